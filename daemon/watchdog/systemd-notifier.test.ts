import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import unixDgram from 'unix-dgram'
import { fakeClock } from '../testing/fake-clock.ts'
import { quietLog } from '../testing/quiet-log.ts'
import { notifierLoop, openSystemdNotifier, type SystemdNotifier } from './systemd-notifier.ts'

/** systemd's end of the socket. */
async function listening(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-notify-'))
  const path = join(folder, 'notify')
  const received: string[] = []
  const socket = unixDgram.createSocket('unix_dgram', (message) => void received.push(message.toString()))
  socket.bind(path)
  t.teardown(async () => {
    socket.close()
    await rm(folder, { recursive: true })
  })
  const until = async (count: number) => {
    while (received.length < count) await once(socket as unknown as NodeJS.EventEmitter, 'message')
    return received
  }
  return { path, until }
}

test('readiness, status and pings are sent over the socket of systemd', async (t) => {
  const { path, until } = await listening(t)
  const notifier = await openSystemdNotifier(
    { NOTIFY_SOCKET: path, WATCHDOG_USEC: '30000000', WATCHDOG_PID: String(process.pid) },
    quietLog(t),
  )
  t.equal(notifier?.beatMs, 10_000, 'three times as often as it must be')
  notifier?.ready()
  notifier?.status('Two\nlines')
  notifier?.alive()
  notifier?.stopping()
  notifier?.close()
  t.same(await until(4), ['READY=1', 'STATUS=Two lines', 'WATCHDOG=1', 'STOPPING=1'])
})

test('without systemd nothing is sent and nothing is loaded', async (t) => {
  t.equal(await openSystemdNotifier({}, quietLog(t)), undefined)
  t.equal(await openSystemdNotifier({ NOTIFY_SOCKET: '@abstract' }, quietLog(t)), undefined)
  const gone = await openSystemdNotifier({ NOTIFY_SOCKET: '/nowhere/notify', WATCHDOG_PID: '1' }, quietLog(t))
  t.equal(gone?.beatMs, undefined, 'it watches somebody else')
  t.doesNotThrow(() => gone?.alive())
  gone?.close()
})

test('the watchdog is pinged only while healthy, and readiness is sent once', async (t) => {
  const sent: string[] = []
  const notifier: SystemdNotifier = {
    beatMs: 2_000,
    ready: () => sent.push('ready'),
    alive: () => sent.push('alive'),
    stopping: () => sent.push('stopping'),
    status: (text) => sent.push(text),
    close: () => undefined,
  }
  const takeSent = () => sent.splice(0)
  const clock = fakeClock()
  const [stop, world] = [new AbortController(), { ready: false, problems: [] as string[], pods: 1 }]
  const view = {
    ready: () => world.ready,
    problems: () => world.problems,
    status: () => `${world.pods} pods`,
  }
  const log = quietLog(t, 'Unhealthy: withholding the systemd watchdog ping')
  const loop = notifierLoop(notifier, view, clock, log).run(stop.signal)
  await clock.advance(0)
  t.same(takeSent(), ['1 pods', 'alive'])
  world.ready = true
  await clock.advance(100)
  t.same(takeSent(), ['ready', 'alive'])
  world.pods = 2
  await clock.advance(2_000)
  t.same(takeSent(), ['2 pods', 'alive'])
  world.problems = ['loop pods hangs']
  await clock.advance(4_000)
  t.same(takeSent(), ['Hangs: loop pods hangs'])
  world.problems = []
  await clock.advance(2_000)
  t.same(takeSent(), ['2 pods', 'alive'])
  stop.abort()
  await loop
  t.same(takeSent(), ['stopping'])
})

test('an environment without a socket, or with an empty one, does not belong to systemd', async (t) => {
  const log = quietLog(t)
  t.equal(await openSystemdNotifier({ NOTIFY_SOCKET: '' }, log), undefined)
  t.same(log.lines, [])
  t.equal(await openSystemdNotifier({ NOTIFY_SOCKET: '@abstract' }, log), undefined)
  t.match(log.lines, [{ level: 'warn', message: /not a path/, facts: { socket: '@abstract' } }])
})

test('the watchdog watches this process where none is named, and no other', async (t) => {
  const beatMs = async (more: { readonly [name: string]: string }) => {
    const notifier = await openSystemdNotifier({ NOTIFY_SOCKET: '/nowhere/notify', ...more }, quietLog(t))
    notifier?.close()
    return notifier?.beatMs
  }
  t.equal(await beatMs({ WATCHDOG_USEC: '6000000' }), 2_000)
  t.equal(await beatMs({ WATCHDOG_USEC: '6000000', WATCHDOG_PID: '1' }), undefined)
  t.equal(await beatMs({ WATCHDOG_USEC: '0' }), undefined)
  t.equal(await beatMs({}), undefined)
})

test('an unhealthy process is logged for each set of problems, and withholds its ping', async (t) => {
  const sent: string[] = []
  const notifier = {
    beatMs: undefined,
    ready: () => sent.push('ready'),
    alive: () => sent.push('alive'),
    stopping: () => sent.push('stopping'),
    status: () => undefined,
    close: () => undefined,
  }
  const [clock, stop] = [fakeClock(), new AbortController()]
  const message = 'Unhealthy: withholding the systemd watchdog ping'
  const log = quietLog(t, message)
  let problems = ['a hangs']
  const view = { ready: () => true, problems: () => problems, status: () => '' }
  const loop = notifierLoop(notifier, view, clock, log).run(stop.signal)
  await clock.advance(10_000)
  t.same(sent, ['ready'])
  t.match(log.lines, [{ level: 'error', message, facts: { problems: ['a hangs'] } }])
  t.equal(log.lines.length, 1)
  problems = ['a hangs', 'b hangs']
  await clock.advance(5_000)
  t.match(log.lines.slice(1), [{ facts: { problems: ['a hangs', 'b hangs'] } }])
  problems = []
  await clock.advance(5_000)
  problems = ['a hangs', 'b hangs']
  await clock.advance(5_000)
  t.equal(log.lines.length, 3, 'logged again after it was healthy')
  stop.abort()
  await loop
})
