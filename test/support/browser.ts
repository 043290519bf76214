/** Debian's Chromium without a window, driven over the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/). */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { commandInSpace, hostEnd } from './browser-space.ts'
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
  /** CPU time of the thread that runs the page so far, in milliseconds: all of it, its scripts, and styles with layout. */
  cpuMs(): Promise<{ readonly all: number; readonly scripts: number; readonly layout: number }>
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

/**
 * A browser with a profile of its own and one page, closed at the end. It reaches the host and port of `url`, and nothing else. It
 * trusts the certificate of any server. It is driven through pipes: a browser whose test was killed sees them closed, and ends.
 */
export async function openBrowser(t: { teardown(end: () => Promise<unknown>): void }, url: string): Promise<Page> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-browser-'))
  const address = new URL(url)
  const host = await hostEnd(folder, address)
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars']
  const quiet = [
    '--no-first-run',
    '--disable-extensions',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-breakpad',
  ]
  const driven = [
    '--ignore-certificate-errors',
    '--remote-debugging-pipe',
    `--user-data-dir=${join(folder, 'profile')}`,
  ]
  const [file, ...args] = commandInSpace(folder, address, [chromium, ...flags, ...quiet, ...driven, 'about:blank'])
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true })
  const ended = once(child, 'close')
  ended.catch(() => undefined) // what waits for an answer fails with it
  t.teardown(async () => {
    killGroup(child)
    await ended.catch(() => undefined)
    host.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  const connection = connectionTo(child)
  const { targetInfos } = (await connection.send('Target.getTargets')) as {
    targetInfos: { type: string; targetId: string }[]
  }
  const targetId = targetInfos.find(({ type }) => type === 'page')?.targetId
  const { sessionId } = (await connection.send('Target.attachToTarget', { targetId, flatten: true })) as {
    sessionId: string
  }
  return pageOf((method, params = {}) => connection.send(method, params, sessionId), connection.onEvent)
}

/** All processes of a browser are in one group, which may have ended. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

type Send = (method: string, params?: object) => Promise<{ readonly [name: string]: unknown }>
type OnEvent = (listener: (method: string, params: { readonly [name: string]: unknown }) => void) => void

type Waiting = {
  readonly method: string
  readonly resolve: (message: Message) => void
  readonly reject: (error: Error) => void
}

/** Messages of DevTools end with a zero byte: the browser reads them from descriptor 3 and writes them to 4. */
function connectionTo(child: ChildProcess) {
  const [, , , commands, answers] = child.stdio
  if (!(commands instanceof Writable) || !(answers instanceof Readable)) throw new Error('Chromium has no pipes')
  const waiting = new Map<number, Waiting>()
  const listeners: Parameters<OnEvent>[0][] = []
  let lastId = 0
  let isOver = false
  const fail = () => {
    isOver = true
    for (const { method, reject } of waiting.values()) reject(new Error(`${method}: Chromium has ended`))
    waiting.clear()
  }
  child.once('close', fail).once('error', fail)
  commands.on('error', () => undefined)
  let pieces: string[] = []
  answers.setEncoding('utf8').on('data', (text: string) => {
    const [first = '', ...others] = text.split('\0')
    pieces.push(first)
    for (const next of others) {
      receive(JSON.parse(pieces.join('')) as Message)
      pieces = [next]
    }
  })
  const receive = (message: Message) => {
    if (message.id === undefined) {
      for (const listener of listeners) listener(message.method ?? '', message.params ?? {})
      return
    }
    waiting.get(message.id)?.resolve(message)
    waiting.delete(message.id)
  }
  return {
    onEvent: (listener: Parameters<OnEvent>[0]) => void listeners.push(listener),
    send: async (method: string, params: object = {}, sessionId?: string) => {
      if (isOver) throw new Error(`${method}: Chromium has ended`)
      const id = ++lastId
      const { result = {}, error } = await new Promise<Message>((resolve, reject) => {
        waiting.set(id, { method, resolve, reject })
        commands.write(`${JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) })}\0`)
      })
      if (error !== undefined) throw new Error(`${method}: ${error.message}`)
      return result
    },
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
  await send('Performance.enable', { timeDomain: 'threadTicks' })
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
    async cpuMs() {
      const { metrics } = (await send('Performance.getMetrics')) as { metrics: { name: string; value: number }[] }
      const of = (name: string) => (metrics.find((one) => one.name === name)?.value ?? 0) * 1000
      const layout = of('LayoutDuration') + of('RecalcStyleDuration')
      return { all: of('TaskDuration'), scripts: of('ScriptDuration'), layout }
    },
    evaluate,
    until,
    async goto(url) {
      const load = async () => (await send('Page.navigate', { url }))['errorText'] === undefined
      await eventually(`${url} is loaded`, load, { withinMs: 30_000 })
    },
    async click(selector, text = '') {
      const [css, shown] = [JSON.stringify(selector), JSON.stringify(text)]
      const found = `[...document.querySelectorAll(${css})].find((one) => one.textContent.includes(${shown}))`
      const place = `(() => { const one = ${found}; one?.scrollIntoView({ block: 'center' }); const box = one?.getBoundingClientRect(); return box?.width > 0 && [box.x + box.width / 2, box.y + box.height / 2] })()`
      // A page that is drawn again between the look and the click puts something else there.
      const watch = `window.clickHit = false; document.addEventListener('click', ({ target }) => { window.clickHit = target.closest(${css})?.textContent.includes(${shown}) }, { capture: true, once: true })`
      const attempt = async () => {
        const [x, y] = await until<[number, number]>(`${selector} ${text} is shown`, place)
        await evaluate(watch)
        for (const type of ['mousePressed', 'mouseReleased']) {
          await send('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 })
        }
        return evaluate<boolean>('window.clickHit')
      }
      await eventually(`${selector} ${text} is clicked`, attempt)
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
