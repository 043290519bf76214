/** Measures what the page of the dashboard costs a controller and a browser. `--help` prints the usage. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loginLinkCommand } from '../../broker-controller/commands/dashboard-command.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { openBrowser, type Page } from '../../test/support/browser.ts'
import { prepareFleet, startLoads } from '../fleet/fleet-load.ts'
import { startServer } from '../fleet/server.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'

const row = {
  name: 'node dist/bench/dashboard/browser-page.js',
  text: `Measures what the page of the dashboard costs a controller and a browser, over the wire: a controller, a fleet that connects to it with mutual
TLS and reports what it uses while it is asked to, and the page in Chromium. Needs Chromium and bundles (npm run build).`,
  options: {
    nodes: { value: 'N', help: 'number of nodes', range: [1, 100_000], default: '1000' },
    pods: { value: 'N', help: 'pods of each', range: [0, 100], default: '3' },
    seconds: { value: 'S', help: 'length of each measurement at rest', range: [1, 100_000], default: '60' },
    'warm-up': {
      value: 'S',
      help: 'seconds before the page is measured: each node reports once a minute',
      range: [0, 100_000],
      default: '90',
    },
    pictures: { value: 'DIR', help: 'write pictures of the page there' },
  },
} as const

const { nodes, pods, seconds, pictures, 'warm-up': warmUp } = benchmarkOptions(row)
const folder = await mkdtemp(join(tmpdir(), 'bramble-page-'))
const dataDir = join(folder, 'data')
const config = join(folder, 'config.yaml')
const closing: (() => unknown)[] = []

/** The whole list from its begin to its end and back, a third of a window with each frame. */
const scrollList = `(async () => {
  const longTasks = []
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ['longtask'] })
  const frames = []
  let tiles = 0
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve))
  const height = document.documentElement.scrollHeight
  const step = innerHeight / 3
  const begin = performance.now()
  let last = await frame()
  for (const way of [step, -step]) {
    for (let at = way > 0 ? 0 : height; at >= 0 && at <= height; at += way) {
      scrollTo(0, at)
      const now = await frame()
      frames.push(now - last)
      last = now
      tiles = Math.max(tiles, document.querySelectorAll('.tile').length)
    }
  }
  return { seconds: (performance.now() - begin) / 1000, frames, longTasks, tiles, height }
})()`

try {
  await mkdir(dataDir, { recursive: true })
  const lines = ['apiVersion: bramble.dev/v1alpha1', 'kind: ControllerConfiguration', 'allocateNodeCIDRs: false']
  await writeFile(config, [...lines, 'podNetwork: node', 'advertiseAddress: 127.0.0.1', ''].join('\n'))
  await measure()
} finally {
  for (const close of closing.reverse()) await close()
  await rm(folder, { recursive: true, force: true })
}

/** The bundle: the files of the page are beside it. */
function start() {
  const main = fileURLToPath(new URL('../../bundle/bramble-controller.mjs', import.meta.url))
  return startServer({ main, dataDir, config, ports: { api: 0, mqtt: 0 }, nodeOptions: [] })
}

async function measure(): Promise<void> {
  const first = await start()
  await first.end('SIGTERM')
  const fleet = await prepareFleet({ folder, dataDir, nodes, pods })
  const server = await start()
  closing.push(() => server.end('SIGTERM'))
  const settings = { ...fleet, port: server.ports.mqtt, nodes, pods, processes: Math.ceil(nodes / 5000) }
  const load = await startLoads({ ...settings, sameImages: false, oneAddress: false, atOnce: 64, beatMs: 10_000 })
  closing.push(() => load.kill())
  await load.ordered({ order: 'connect' })
  await server.steady(120_000)
  const cpuPercent = async () => {
    const before = server.cpuMs()
    await clock.sleep(seconds * 1000)
    return (server.cpuMs() - before) / 10 / seconds
  }
  const without = await cpuPercent()
  const residentBytes = server.residentBytes()
  console.log(`no page: ${without.toFixed(2)} % of a core, ${mB(residentBytes)} resident`)

  const link = await loginLink()
  const page = await openBrowser({ teardown: (end) => void closing.push(end) }, link)
  await page.size(1280, 860)
  const beginMs = performance.now()
  await page.goto(link)
  await page.until('all machines', `document.querySelector('h1')?.textContent.includes('${nodes} machine')`)
  console.log(`${nodes} machines shown ${Math.round(performance.now() - beginMs)} ms after the link was opened`)
  console.log(await firstPaint(page))
  const files = await page.evaluate<number>(
    `performance.getEntriesByType('resource').filter(({ name }) => /\\.(js|css|svg)$/.test(name)).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
  )
  console.log(
    `files of the page: ${kB(files)} compressed; cards and everything else: ${kB(page.receivedBytes() - files)}`,
  )
  await page.until('usage', `/CPU\\d+%/.test(document.querySelector('.tile')?.textContent ?? '')`, 120_000)
  console.log(
    `files of the page: ${kB(files)} compressed; cards and everything else until usage is shown: ${kB(page.receivedBytes() - files)}`,
  )
  await clock.sleep(warmUp * 1000)
  const before = page.receivedBytes()
  const open = await cpuPercent()
  console.log(
    `one page open: ${(open - without).toFixed(2)} % of a core more; it receives ${((page.receivedBytes() - before) / 1000 / seconds).toFixed(2)} kB/s; ${mB(server.residentBytes() - residentBytes)} more resident`,
  )
  await scrolled(page)
  if (pictures !== undefined) await shoot(page, pictures)
}

async function loginLink(): Promise<string> {
  let link = ''
  await loginLinkCommand(['--data-dir', dataDir], {
    stdout: (text) => {
      link += text
    },
    stderr: (text) => void process.stderr.write(text),
    signal: new AbortController().signal,
  })
  return link.trim()
}

/** On a page that is loaded: when its files had arrived, and when the browser drew the first of it. */
async function firstPaint(page: Page): Promise<string> {
  const [files, painted] = await page.evaluate<readonly [number, number]>(`[
    Math.max(...performance.getEntriesByType('resource').filter(({ name }) => /\\.(js|css)$/.test(name)).map(({ responseEnd }) => responseEnd)),
    performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1,
  ]`)
  return `first contentful paint ${Math.round(painted)} ms after the page was requested; its files had arrived after ${Math.round(files)} ms`
}

type Scrolling = {
  readonly seconds: number
  readonly frames: readonly number[]
  readonly longTasks: readonly number[]
  readonly tiles: number
  readonly height: number
}

async function scrolled(page: Page): Promise<void> {
  const before = await page.cpuMs()
  const { seconds: took, frames, longTasks, tiles, height } = await page.evaluate<Scrolling>(scrollList)
  const after = await page.cpuMs()
  const each = (of: keyof typeof before) => ((after[of] - before[of]) / frames.length).toFixed(1)
  console.log(
    `CPU of the page for each frame: ${each('all')} ms, ${each('scripts')} ms of it scripts, ${each('layout')} ms styles and layout`,
  )
  const sorted = [...frames].sort((a, b) => a - b)
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0)
  console.log(
    `scrolling ${height} pixels down and up: ${frames.length} frames in ${took.toFixed(1)} s, each ${at(0.5)} ms (median), ${at(0.95)} ms (95 %), ${at(1)} ms (longest); ${longTasks.length} tasks over 50 ms${longTasks.length > 0 ? `, the longest ${Math.round(Math.max(...longTasks))} ms` : ''}; at most ${tiles} tiles in the document`,
  )
}

async function shoot(page: Page, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  const views = { fleet: '#/fleet', map: '#/map', pods: '#/pods', events: '#/events', node: '#/node/node-1' }
  for (const [size, [width, height]] of Object.entries({ desktop: [1280, 860], phone: [390, 844] } as const)) {
    for (const isDark of [false, true]) {
      await page.size(width, height, isDark)
      for (const [name, hash] of Object.entries(views)) {
        await page.evaluate(`location.hash = '${hash}'; scrollTo(0, 0)`)
        await clock.sleep(1_000)
        await page.screenshot(join(to, `${name}-${size}-${isDark ? 'dark' : 'light'}.png`))
      }
    }
  }
}

function kB(bytes: number): string {
  return `${Math.round(bytes / 1000)} kB`
}

function mB(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}
