// Requests to the server. The cookie has the token.
async function sent(path, body, signal) {
  const options = body === undefined ? {} : {
    method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" },
  };
  let response;
  try {
    response = await fetch(path, { ...options, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw { problem: "the server does not respond", hint: "is `tutti explore` still running?" };
  }
  if (response.status === 422) throw await response.json();
  if (!response.ok) throw { problem: (await response.text()) || response.statusText, hint: "" };
  return response;
}

export const get = async (path) => (await sent(path)).json();
export const post = async (path, body, signal) => (await sent(path, body, signal)).json();

export async function download(path, body) {
  const response = await sent(path, body);
  const name = /filename="(.+)"/.exec(response.headers.get("content-disposition"))[1];
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Reads server-sent events; calls `on(name, value)` for each.
export async function stream(path, body, on, signal) {
  const reader = (await sent(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const [name, data] = event.split("\n");
      on(name.slice("event: ".length), JSON.parse(data.slice("data: ".length)));
    }
  }
}
