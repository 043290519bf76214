/** Debian's Chromium without a window, driven over the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/). */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import WebSocket from 'ws'
import { eventually } from './wait.ts'

export const chromium = '/usr/bin/chromium'

/** For `skipWithout('chromium', …)`. */
export function hasChromium(): boolean {
  return existsSync(chromium)
}

export interface Page {
  goto(url: string): Promise<void>
  /** The value of an expression; a promise is awaited. Throws what it throws. */
  evaluate<T = unknown>(expression: string): Promise<T>
  /** Resolves with the value when the expression is true. */
  until<T = unknown>(what: string, expression: string, withinMs?: number): Promise<T>
  /** Clicks the first element that matches and shows this text; waits for it. */
  click(selector: string, text?: string): Promise<void>
  /** Types into the focused element, as a keyboard does. */
  type(text: string): Promise<void>
  /** `Enter`, `Tab`, `Escape`. */
  press(key: string): Promise<void>
  size(width: number, height: number, isDark?: boolean): Promise<void>
  screenshot(path: string): Promise<void>
  /** Addresses of all requests so far. */
  readonly requests: readonly string[]
  /** Errors and refusals of the Content-Security-Policy that the page wrote to its console. */
  readonly complaints: readonly string[]
  /** Bytes of all bodies that came over the network so far, as they were compressed. */
  receivedBytes(): number
}

type Message = {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly [name: string]: unknown }
  readonly result?: { readonly [name: string]: unknown }
  readonly error?: { readonly message: string }
}

/** A browser with a profile of its own and one page, closed at the end. It trusts the certificate of any server. */
export async function openBrowser(t: { teardown(end: () => Promise<unknown>): void }): Promise<Page> {
  const profile = await mkdtemp(join(tmpdir(), 'bramble-browser-'))
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars']
  const quiet = [
    '--no-first-run',
    '--disable-extensions',
    '--disable-background-networking',
    '--disable-component-update',
  ]
  const child = spawn(
    chromium,
    [
      ...flags,
      ...quiet,
      '--ignore-certificate-errors',
      '--remote-debugging-port=0',
      `--user-data-dir=${profile}`,
      'about:blank',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], detached: true },
  )
  const ended = once(child, 'close')
  t.teardown(async () => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    await ended
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  })
  const connection = await connect(await endpointOf(child))
  const { targetInfos } = (await connection.send('Target.getTargets')) as {
    targetInfos: { type: string; targetId: string }[]
  }
  const targetId = targetInfos.find(({ type }) => type === 'page')?.targetId
  const { sessionId } = (await connection.send('Target.attachToTarget', { targetId, flatten: true })) as {
    sessionId: string
  }
  return pageOf((method, params = {}) => connection.send(method, params, sessionId), connection.onEvent)
}

async function endpointOf(child: ChildProcess): Promise<string> {
  if (child.stderr === null) throw new Error('Chromium has no output')
  for await (const line of createInterface({ input: child.stderr })) {
    const [, url] = /^DevTools listening on (ws:\S+)$/.exec(line) ?? []
    if (url !== undefined) {
      child.stderr.resume()
      return url
    }
  }
  throw new Error('Chromium ended')
}

type Send = (method: string, params?: object) => Promise<{ readonly [name: string]: unknown }>
type OnEvent = (listener: (method: string, params: { readonly [name: string]: unknown }) => void) => void

async function connect(url: string) {
  const socket = new WebSocket(url, { maxPayload: 256 * 1024 * 1024 })
  await once(socket, 'open')
  const waiting = new Map<number, (message: Message) => void>()
  const listeners: Parameters<OnEvent>[0][] = []
  let lastId = 0
  socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as Message
    if (message.id !== undefined) waiting.get(message.id)?.(message)
    else for (const listener of listeners) listener(message.method ?? '', message.params ?? {})
  })
  socket.on('error', () => undefined)
  return {
    onEvent: (listener: Parameters<OnEvent>[0]) => void listeners.push(listener),
    send: (method: string, params: object = {}, sessionId?: string) =>
      new Promise<{ readonly [name: string]: unknown }>((resolve, reject) => {
        const id = ++lastId
        waiting.set(id, ({ result = {}, error }) => {
          waiting.delete(id)
          if (error === undefined) resolve(result)
          else reject(new Error(`${method}: ${error.message}`))
        })
        socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }))
      }),
  }
}

async function pageOf(send: Send, onEvent: OnEvent): Promise<Page> {
  const requests: string[] = []
  const complaints: string[] = []
  let received = 0
  onEvent((method, params) => {
    if (method === 'Network.requestWillBeSent') requests.push((params as { request: { url: string } }).request.url)
    if (method === 'Network.dataReceived') received += (params as { encodedDataLength: number }).encodedDataLength
    if (method === 'Log.entryAdded') {
      const { entry } = params as { entry: { level: string; text: string; url?: string } }
      if (entry.level === 'error') complaints.push(`${entry.text} ${entry.url ?? ''}`)
    }
    if (method === 'Runtime.exceptionThrown') complaints.push(JSON.stringify(params).slice(0, 500))
  })
  for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await send(`${domain}.enable`)

  const evaluate: Page['evaluate'] = async <T>(expression: string) => {
    const answer = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    const { result, exceptionDetails } = answer as {
      result: { value?: unknown }
      exceptionDetails?: { exception?: { description?: string }; text: string }
    }
    if (exceptionDetails !== undefined)
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value as T
  }
  const until: Page['until'] = async <T>(what: string, expression: string, withinMs = 60_000) => {
    const look = async () => (await evaluate<T | false | null | undefined>(expression)) || undefined
    return (await eventually(what, look, { withinMs, everyMs: 100 })) as T
  }
  return {
    requests,
    complaints,
    receivedBytes: () => received,
    evaluate,
    until,
    async goto(url) {
      const load = async () => (await send('Page.navigate', { url }))['errorText'] === undefined
      await eventually(`${url} is loaded`, load, { withinMs: 30_000 })
    },
    async click(selector, text = '') {
      const found = `[...document.querySelectorAll(${JSON.stringify(selector)})].find((one) => one.textContent.includes(${JSON.stringify(text)}))`
      const place = `(() => { const one = ${found}; one?.scrollIntoView({ block: 'center' }); const box = one?.getBoundingClientRect(); return box?.width > 0 && [box.x + box.width / 2, box.y + box.height / 2] })()`
      const [x, y] = await until<[number, number]>(`${selector} ${text} is shown`, place)
      for (const type of ['mousePressed', 'mouseReleased']) {
        await send('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 })
      }
    },
    async type(text) {
      for (const key of text) await send('Input.dispatchKeyEvent', { type: 'char', text: key })
    },
    async press(key) {
      const codes: { readonly [name: string]: number } = { Enter: 13, Tab: 9, Escape: 27 }
      const named = { key, code: key, windowsVirtualKeyCode: codes[key] ?? 0, ...(key === 'Enter' && { text: '\r' }) }
      for (const type of ['keyDown', 'keyUp']) await send('Input.dispatchKeyEvent', { type, ...named })
    },
    async size(width, height, isDark = false) {
      const isPhone = width < 600
      await send('Emulation.setDeviceMetricsOverride', {
        width,
        height,
        deviceScaleFactor: isPhone ? 2 : 1,
        mobile: isPhone,
      })
      const features = [{ name: 'prefers-color-scheme', value: isDark ? 'dark' : 'light' }]
      await send('Emulation.setEmulatedMedia', { features })
    },
    async screenshot(path) {
      const { data } = (await send('Page.captureScreenshot', { format: 'png' })) as { data: string }
      await writeFile(path, Buffer.from(data, 'base64'))
    },
  }
}
