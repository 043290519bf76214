import { type Test, test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { agentBoard } from '../assembly/board.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import { runtimeHealth, runtimeView } from '../node/status/runtime-health.ts'
import { engineInfo } from '../testing/builders.ts'
import { brokenFile, type DockerSilence, dockerCheck, dockerHealth } from './docker.ts'
import { dockerKeeper } from './docker-keeper.ts'
import { healthManager } from './health-manager.ts'
import type { UnitState } from './unit-controller.ts'

const version = 'docker://20.10.24+dfsg1'
const minutes = 60_000

test('a Docker that is away for a moment is well, one that is down or hangs is not', async (t) => {
  const after = (kind: DockerSilence['kind'], sinceMs: number) =>
    dockerHealth({ version, silence: { kind, sinceMs } })?.reason
  t.equal(after('refuses', 4_999), 'DockerAnswers')
  t.equal(after('refuses', 5_000), 'DockerDown')
  t.equal(after('hangs', 7_999), 'DockerAnswers')
  t.equal(after('hangs', 8_000), 'DockerHangs')
  t.match(dockerHealth({ version, silence: undefined }), { status: 'False', reason: 'DockerAnswers' })
})

test('a hung Docker is recorded as an event within twenty seconds, whenever it began to hang', async (t) => {
  const hangingAt = async (startMs: number, lateMs: number) => {
    const [clock, log] = [fakeClock(), quietLog(t)]
    const stopping = new AbortController()
    let hangs = false
    const board = agentBoard()
    const health = runtimeView(board.runtime, clock)
    const loop = runtimeHealth({
      runtime: {
        probe: () => (hangs ? new Promise(() => undefined) : Promise.resolve()),
        info: async () => engineInfo,
        listImages: async () => [],
      },
      clock,
      log,
      writes: board,
    })
    let recordedMs: number | undefined
    const look = () => dockerHealth({ version: health.info()?.version, silence: health.silence() })
    const manager = healthManager({
      checks: [{ type: 'DockerUnhealthy', periodMs: 5_000, holdMs: 5_000, look }],
      clock,
      log,
      recordEvent: ({ reason }) => {
        if (reason === 'DockerHangs') recordedMs ??= clock.monotonicMs()
      },
      writes: board,
    })
    void loop.run(stopping.signal)
    await clock.advance(lateMs)
    const managing = manager.run(stopping.signal)
    await clock.advance(startMs)
    hangs = true
    const sinceMs = clock.monotonicMs()
    for (let second = 0; second < 40; second++) await clock.advance(1_000)
    stopping.abort()
    await managing
    return (recordedMs ?? Number.POSITIVE_INFINITY) - sinceMs
  }
  for (const lateMs of [0, 1_500, 3_000, 4_500]) {
    for (let startMs = 10_000; startMs < 40_000; startMs += 1_100) {
      const tookMs = await hangingAt(startMs, lateMs)
      if (tookMs > 20_000) t.fail(`${tookMs} ms when it began at ${startMs}, the looks ${lateMs} ms apart`)
    }
  }
  t.pass('from none of these moments on')
})

test('a Docker that is too old becomes a condition; one that never answered does not at first', async (t) => {
  t.match(dockerHealth({ version: 'docker://19.03.15', silence: undefined }), {
    status: 'True',
    reason: 'DockerTooOld',
  })
  t.match(dockerHealth({ version: 'docker://28.1.0', silence: undefined }), { status: 'False' })
  t.equal(dockerHealth({ version: undefined, silence: undefined }), undefined)
  t.match(dockerHealth({ version: undefined, silence: { kind: 'refuses', sinceMs: 9_000 } }), { reason: 'DockerDown' })
})

function keeper(t: Test) {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const world = {
    kind: 'refuses' as DockerSilence['kind'],
    silentSinceMs: undefined as number | undefined,
    unit: { load: 'loaded', active: 'active' } as UnitState,
    restarts: [] as number[],
    fails: false,
    events: [] as NodeEvent[],
  }
  const loop = dockerKeeper({
    silence: () =>
      world.silentSinceMs === undefined
        ? undefined
        : { kind: world.kind, sinceMs: clock.monotonicMs() - world.silentSinceMs },
    services: {
      isAvailable: () => true,
      state: async () => world.unit,
      async restart() {
        if (world.fails) throw new Error('Access denied')
        world.restarts.push(clock.monotonicMs())
      },
    },
    clock,
    log,
    recordEvent: (event) => void world.events.push(event),
  })
  const stopping = new AbortController()
  const done = loop.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await done
  })
  return { world, clock, log }
}

test('a Docker that stays down is restarted, at growing intervals, each time with an event', async (t) => {
  const { world, clock } = keeper(t)
  world.silentSinceMs = 0
  await clock.advance(19_000)
  t.same(world.restarts, [], 'an upgrade takes a while')
  await clock.advance(1_000)
  t.same(world.restarts, [20_000])
  t.match(world.events, [
    { type: 'Warning', reason: 'DockerRestarted', message: /docker.service: it was down for 20 s; restart 1 in a row/ },
  ])
  await clock.advance(15 * minutes)
  t.same(world.restarts, [20_000, 140_000, 380_000, 860_000])
  await clock.advance(24 * 60 * minutes)
  t.ok(world.restarts.length < 33, `${world.restarts.length}: once an hour in the end`)
})

test('a Docker that hangs is given longer, and the intervals start over after it was well for a while', async (t) => {
  const { world, clock } = keeper(t)
  world.kind = 'hangs'
  world.silentSinceMs = 0
  await clock.advance(44_000)
  t.equal(world.restarts.length, 0)
  await clock.advance(6 * minutes)
  t.equal(world.restarts.length, 2)
  world.silentSinceMs = undefined
  await clock.advance(11 * minutes)
  world.silentSinceMs = clock.monotonicMs()
  await clock.advance(minutes)
  t.equal(world.restarts.length, 3)
  t.match(world.events.at(-1), { message: /it hung for \d+ s; restart 1 in a row/ })
})

test('a Docker that systemd is working on, or that is kept from starting, is left alone', async (t) => {
  const { world, clock, log } = keeper(t)
  world.silentSinceMs = 0
  world.unit = { load: 'loaded', active: 'activating' }
  await clock.advance(minutes)
  world.unit = { load: 'masked', active: 'inactive' }
  await clock.advance(minutes)
  t.same(world.restarts, [])
  t.equal(log.messages('warn').length, 2, 'each reason is logged once')
  world.unit = { load: 'loaded', active: 'failed' }
  await clock.advance(5_000)
  t.equal(world.restarts.length, 1)
})

test('a refused restart is recorded as an event, and tried again later', async (t) => {
  const { world, clock } = keeper(t)
  world.silentSinceMs = 0
  world.fails = true
  await clock.advance(minutes)
  t.match(world.events, [{ reason: 'DockerRestartFailed', message: /Access denied/ }])
  t.equal(world.events.length, 1)
})

/** As dockerd 20.10.24 printed them, with each of these files broken. */
const network =
  'failed to start daemon: Error initializing network controller: error obtaining controller instance: failed to get bridge network configurations from store: error while populating kmap: invalid database'
const volumes = 'failed to start daemon: error while opening volume store metadata database: invalid database'
const names = "failed to start daemon: Couldn't create reference store repository: unexpected EOF"
const builds = 'failed to open database file /var/lib/docker/buildkit/cache.db: invalid database'
const settings = 'unable to configure the Docker daemon with file /etc/docker/daemon.json: unexpected EOF'
const systemd = 'docker.service: Failed with result exit-code.'

test('the file that keeps Docker from starting is found in the last lines of its log', async (t) => {
  const pathOf = (line: string) => brokenFile(['time="…" level=info msg="Starting up"', line, systemd, ''])?.path
  t.equal(pathOf(network), '/var/lib/docker/network/files/local-kv.db')
  t.equal(pathOf(volumes), '/var/lib/docker/volumes/metadata.db')
  t.equal(pathOf(names), '/var/lib/docker/image/overlay2/repositories.json')
  t.equal(pathOf(builds), '/var/lib/docker/buildkit/cache.db')
  t.equal(pathOf(settings), '/etc/docker/daemon.json')
  t.equal(pathOf('failed to start daemon: pid file found'), undefined)
  t.match(brokenFile([network], '/data/docker'), {
    path: '/data/docker/network/files/local-kv.db',
    problem: /^network controller: .*invalid database$/,
    remedy: /^Move it away \('mv \/data\/docker\/network\/files\/local-kv\.db .*systemctl restart docker/,
  })
  t.match(brokenFile([settings]), { remedy: /^Correct it/ })
  t.ok((brokenFile([`${settings}${'x'.repeat(5_000)}`])?.problem.length ?? 0) <= 300)
})

test('only the last failure counts', async (t) => {
  t.equal(brokenFile([network, systemd, settings])?.path, '/etc/docker/daemon.json')
  t.equal(brokenFile([network, systemd, 'failed to start daemon: no space left on device']), undefined)
  t.equal(brokenFile([network, 'level=info msg="Daemon has completed initialization"', 'stopped']), undefined)
  const locked = 'failed to start daemon: error while opening volume store metadata database: timeout'
  t.equal(brokenFile([locked]), undefined, 'another dockerd has it open')
  t.equal(brokenFile([]), undefined)
})

test('the condition of a Docker that is down names the file and the remedy', async (t) => {
  const silence = { kind: 'refuses', sinceMs: 60_000 } as const
  const lastLines = async () => [network]
  const found = await dockerCheck.look(
    { docker: () => ({ version: undefined, silence, lastLines }) },
    { settings: { highTemperatureCelsius: undefined }, wasWrong: false },
  )
  t.match(found, {
    status: 'True',
    reason: 'DockerDown',
    found: /^Docker does not start because of \/var\/lib\/docker\/network\/files\/local-kv\.db: network controller: /,
    remedy: /^Move it away/,
  })
  t.match(dockerHealth({ version: undefined, silence }), { reason: 'DockerDown', found: 'Docker is not running' })
})

test('the log is read only when Docker is down', async (t) => {
  let read = 0
  const lastLines = async () => {
    read++
    return []
  }
  const look = (silence: { readonly kind: 'refuses' | 'hangs'; readonly sinceMs: number } | undefined) =>
    dockerCheck.look(
      { docker: () => ({ version: 'docker://20.10.24', silence, lastLines }) },
      { settings: { highTemperatureCelsius: undefined }, wasWrong: false },
    )
  await look(undefined)
  await look({ kind: 'refuses', sinceMs: 4_999 })
  await look({ kind: 'hangs', sinceMs: 60_000 })
  t.equal(read, 0)
  t.match(await look({ kind: 'refuses', sinceMs: 5_000 }), { reason: 'DockerDown', found: 'Docker is not running' })
  t.equal(read, 1)
})
