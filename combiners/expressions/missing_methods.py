"""Advice for methods of texts and of times that expressions do not have: what to write instead.

Guarded by tests/combiners/expressions/test_text_methods.py and tests/combiners/expressions/test_time_methods.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...advice import each

OF_TEXTS: Mapping[str, str] = {
    "casefold": "write x.str.to_lowercase()",
    **each("lstrip ltrim", "write x.str.strip_chars_start()"),
    **each("rstrip rtrim", "write x.str.strip_chars_end()"),
    **each("match fullmatch like rlike", "write x.str.contains('^a.c$')"),
    **each("startswith startsWith", "write x.str.starts_with('a')"),
    **each("endswith endsWith", "write x.str.ends_with('a')"),
    **each("replace_many sub regexp_replace", "write x.str.replace_all('a', 'b')"),
    **each("split split_exact partition get", "write x.str.split_part(',', 0)"),
    **each("substr substring head tail", "write x.str.slice(0, 3), or x.str.slice(-3)"),
    **each("size n_chars lengths", "write x.str.len_chars()"),
    **each("cat concat join", "write uc.concat(x, y)"),
    **each("extract extract_groups", "write x.call('extract_regex', options={'pattern': '(?P<a>.)'}).field('a')"),
    **each("find index", "write x.call('find_substring', options={'pattern': 'a'})"),
    **each("count count_matches", "write x.call('count_substring', options={'pattern': 'a'})"),
    **each("to_datetime strptime", "write x.cast_time('%d.%m.%Y')"),
    **each("reverse title capitalize", "write x.call('utf8_{}')"),
}

OF_TIMES: Mapping[str, str] = {
    **each("dayofweek day_of_week isoweekday", "write x.dt.weekday(), which is 1 for Monday"),
    **each("dayofyear day_of_year", "write x.dt.ordinal_day()"),
    **each("dayofmonth day_of_month", "write x.dt.day()"),
    **each("weekofyear isocalendar iso_week", "write x.dt.week()"),
    **each("iso_year is_leap_year", "write x.call('{}')"),
    **each("floor trunc round date_trunc normalize", "write x.dt.truncate('1 hour')"),
    "millisecond": "write x.dt.microsecond() // 1000",
    **each("days", "write x.dt.total_days()"),
    **each("seconds", "write x.dt.total_seconds()"),
    **each("total_milliseconds total_microseconds microseconds", "write x // timedelta(milliseconds=1)"),
    **each("tz_convert astimezone", "write x.dt.convert_time_zone('Europe/Berlin')"),
    **each("tz_localize to_utc to_utc_timestamp assume_timezone", "write x.dt.replace_time_zone('Europe/Berlin')"),
    **each("strftime to_string", "write x.call('strftime', options={'format': '%Y-%m-%d'})"),
    **each("offset_by", "write x + timedelta(days=1)"),
    **each("timestamp epoch", "write x.cast('int64')"),
    **each("time", "write x.cast(pa.time64('us'))"),
}
