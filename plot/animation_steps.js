"use strict";
// The slider, the buttons and the keys of the page, which show a step with `draw` of animation.js.

function start() {
  const part = name => document.getElementById(name);
  const run = model(JSON.parse(part("data").textContent)), last = run.steps.at.length - 1;
  const slider = part("step"), play = part("play"), choice = part("keys");
  let step = last, zoom = 1, timer = null, used = 0;

  const chosen = () => choice.value === "each" ? run.keys.map((_, key) => key) : [Number(choice.value)];
  function show() {
    if (!part("panels").clientWidth) return; // in a page that is hidden
    const figures = part("panels"), keys = chosen();
    while (figures.children.length > keys.length) figures.lastChild.remove();
    while (figures.children.length < keys.length)
      figures.append(document.createElement("figure"));
    [...figures.children].forEach((figure, place) => {
      const key = keys[place], width = figure.clientWidth;
      const most = keys.length > 1 ? 420 : Math.max(window.innerHeight - used - 24, 300);
      const height = Math.round(Math.min(Math.max(width * 0.62, 300), most));
      const has = own => own < 0 || key < 0 || own === key;
      const name = keys.length > 1 ? `<figcaption>${text(run.keys[key])}</figcaption>` : "";
      figure.innerHTML = name + draw(run, has, step, view(run, step, zoom), width, height);
    });
    choice.title = choice.selectedOptions[0].text; // it is cut where the page is narrow
    slider.value = step;
    const time = run.timed ? `, ${time_text(run.origin, run.steps.at[step])}` : "";
    part("place").textContent = `Step ${step + 1} of ${last + 1}${time}`;
    slider.setAttribute("aria-valuetext", part("place").textContent);
    part("words").textContent = run.steps.words[step];
    part("out").disabled = zoom <= 1;
    part("whole").textContent = `${zoom}×`;
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    part("words").setAttribute("aria-live", "polite");
  }
  function go(place) {
    stop();
    step = within(0, place, last);
    show();
  }
  function toggle() {
    if (timer) return stop();
    const length = within(60, 20_000 / (last + 1), 900), stride = Math.ceil(last / 500);
    if (step === last) step = 0;
    play.textContent = "Pause";
    part("words").setAttribute("aria-live", "off");
    timer = setInterval(() => {
      step = Math.min(step + stride, last);
      if (step === last) stop();
      show();
    }, length);
    show();
  }
  function scale(times) {
    zoom = within(1, zoom * times, 1024);
    show();
  }
  function label_steps() {
    const room = part("labels").clientWidth - 16;
    part("labels").innerHTML = labelled(run, Math.max(Math.floor(room / 80), 2)).map(({ place, words }) =>
      `<span style="left:${short(8 + (last ? place / last : 0) * room)}px">${text(words)}</span>`).join("");
  }

  slider.max = last;
  slider.oninput = () => go(Number(slider.value));
  part("back").onclick = () => go(step - 1);
  part("on").onclick = () => go(step + 1);
  part("out").onclick = () => scale(1 / 2);
  part("in").onclick = () => scale(2);
  part("whole").onclick = () => scale(1 / zoom);
  play.onclick = toggle;
  choice.onchange = show;
  const page = Math.max(Math.round(last / 10), 1);
  const keys = {
    ArrowRight: () => go(step + 1), ArrowLeft: () => go(step - 1), PageUp: () => go(step + page),
    PageDown: () => go(step - page), Home: () => go(0), End: () => go(last),
    "+": () => scale(2), "-": () => scale(1 / 2), 0: () => scale(1 / zoom), " ": toggle,
  };
  document.onkeydown = event => {
    const own = event.target.tagName === "SELECT" || (event.target.tagName === "BUTTON" && event.key === " ");
    if (own || event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  };
  let width = 0;
  new ResizeObserver(() => {
    if (part("panels").clientWidth === width) return;
    width = part("panels").clientWidth;
    part("words").textContent = "";
    used = document.body.offsetHeight - part("panels").offsetHeight;
    label_steps();
    show();
  }).observe(part("panels"));
}

start();
