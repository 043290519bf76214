/** A terminal on a WebSocket of the Kubernetes API (v5.channel.k8s.io). */
import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'

/** First byte of each message: what the rest is (k8s.io/apimachinery/pkg/util/remotecommand/constants.go). */
const channels = { input: 0, output: 1, errors: 2, status: 3, resize: 4 } as const

/** Opens a shell; `onState` is called with what to show. Returns what closes it. */
export function openTerminal(
  box: HTMLElement,
  path: string,
  container: string,
  onState: (state: string) => void,
): () => void {
  adoptStyles()
  const { color, backgroundColor } = getComputedStyle(box)
  const terminal = new Terminal({
    cursorBlink: false,
    fontSize: 13,
    screenReaderMode: true,
    fontFamily: 'ui-monospace, "DejaVu Sans Mono", monospace',
    theme: { foreground: color, background: backgroundColor, cursor: color },
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  terminal.open(box)
  fit.fit()
  const options = new URLSearchParams({ container, stdin: 'true', stdout: 'true', tty: 'true' })
  // The best shell that the image has.
  for (const word of ['/bin/sh', '-c', 'command -v bash >/dev/null 2>&1 && exec bash || exec sh'])
    options.append('command', word)
  const url = new URL(`${path}?${options}`, location.href)
  url.protocol = 'wss:'
  const socket = new WebSocket(url, ['v5.channel.k8s.io'])
  socket.binaryType = 'arraybuffer'
  const encoder = new TextEncoder()
  const send = (channel: number, text: string) => {
    if (socket.readyState !== WebSocket.OPEN) return
    const bytes = encoder.encode(text)
    const message = new Uint8Array(bytes.length + 1)
    message[0] = channel
    message.set(bytes, 1)
    socket.send(message)
  }
  const resize = () => send(channels.resize, JSON.stringify({ Width: terminal.cols, Height: terminal.rows }))
  let end = 'The connection has ended.'
  socket.onopen = () => {
    onState('Connected')
    resize()
    terminal.focus()
  }
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    const bytes = new Uint8Array(data)
    const channel = bytes[0]
    if (channel === channels.output || channel === channels.errors) terminal.write(bytes.subarray(1))
    else if (channel === channels.status) end = endOf(new TextDecoder().decode(bytes.subarray(1)))
  }
  socket.onerror = () => {
    end = 'The shell was refused, or the connection failed.'
  }
  socket.onclose = () => onState(end)
  terminal.onData((text) => send(channels.input, text))
  terminal.onResize(resize)
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key !== 'Escape' || !event.ctrlKey || !event.shiftKey) return true
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur()
    return false
  })
  const watching = new ResizeObserver(() => fit.fit())
  watching.observe(box)
  return () => {
    watching.disconnect()
    socket.onclose = null
    socket.close()
    terminal.dispose()
  }
}

function endOf(text: string): string {
  try {
    const { status, message } = JSON.parse(text) as { readonly status?: string; readonly message?: string }
    return status === 'Success' ? 'The shell has ended.' : (message ?? 'The shell failed.')
  } catch {
    return 'The shell has ended.'
  }
}

let isAdopting = false

/**
 * The terminal writes its colours and sizes into style elements, which the Content-Security-Policy of the page forbids. Constructed
 * style sheets are allowed: what is written into a style element becomes one.
 */
function adoptStyles(): void {
  if (isAdopting) return
  isAdopting = true
  const sheets = new WeakMap<HTMLStyleElement, CSSStyleSheet>()
  Object.defineProperty(HTMLStyleElement.prototype, 'textContent', {
    set(this: HTMLStyleElement, text: string) {
      const present = sheets.get(this)
      const sheet = present ?? new CSSStyleSheet()
      sheets.set(this, sheet)
      sheet.replaceSync(text)
      if (present === undefined) document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
    },
  })
}
