import { type Test, test } from 'tap'
import type { Container } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { aborted } from '../../../daemon/aborted.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { warningsDuring } from '../../../daemon/testing/process-warnings.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import type { PodEvent } from '../record/pod-events.ts'
import { prober } from './prober.ts'
import type { ProbeAnswer } from './targets.ts'

const well: ProbeAnswer = { result: 'success', message: '' }
const ill: ProbeAnswer = { result: 'failure', message: 'no' }

function found(id: string, clock: { wallMs(): number }): RuntimeContainer {
  const now = new Date(clock.wallMs()).toISOString()
  return aContainer({ id, identity: { podUID: 'uid' }, createdAt: now, startedAt: now })
}

test('a container is probed at its period, and a change is reported once, at once', async (t) => {
  const clock = fakeClock()
  const changed: string[] = []
  const events: string[] = []
  let answer = well
  let asked = 0
  const probes = prober({
    runtime: { exec: async () => ({ exitCode: 0, output: '' }) },
    network: {
      ask: async () => {
        asked++
        return answer
      },
    },
    clock,
    random: () => 0.5,
    log: quietLog(t),
    recordEvent: (_, { message }) => events.push(message),
    changed: (uid) => changed.push(uid),
  })
  const stopping = new AbortController()
  const running = probes.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await clock.advance(2_000)
    await running
  })
  const readinessProbe = { tcpSocket: { port: 80 }, periodSeconds: 10, failureThreshold: 2 }
  const main: Container = { name: 'main', image: 'app:1', readinessProbe }
  const pod = aPod({ name: 'web', uid: 'uid', containers: [main] })
  const one = found('one', clock)
  const observe = (container: RuntimeContainer) =>
    probes.observe('uid', { pod, containers: [container], podIP: '10.0.0.1', leaving: false })
  observe(one)
  t.same(probes.vitals('uid').get('one'), { started: true, ready: false }, 'not ready before its first probe')
  await clock.advance(0)
  t.same(probes.vitals('uid').get('one'), { started: true, ready: true }, 'asked as soon as it runs')
  t.same(changed, ['uid'])
  observe(one)
  await clock.advance(20_000)
  t.equal(asked, 3, 'an observation of the pod runs no probe')
  t.equal(changed.length, 1)
  answer = ill
  await clock.advance(10_000)
  t.equal(probes.vitals('uid').get('one')?.ready, true, 'one failure does not count')
  await clock.advance(10_000)
  t.equal(probes.vitals('uid').get('one')?.ready, false)
  t.equal(changed.length, 2)
  await clock.advance(30_000)
  t.same(events, ['Readiness probe failed: no'], 'recorded once while the message is the same')
  observe(found('two', clock))
  t.equal(probes.vitals('uid').get('two')?.ready, false)
  probes.forget('uid')
  const before = asked
  await clock.advance(60_000)
  t.equal(asked, before)
})

test('thirty probes that wait for an answer at once make the process emit no warning', async (t) => {
  const clock = fakeClock()
  const probes = prober({
    runtime: { exec: async () => ({ exitCode: 0, output: '' }) },
    network: { ask: (_, __, signal) => aborted(signal).then(() => ill) },
    clock,
    random: () => 0,
    log: quietLog(t),
    recordEvent: () => undefined,
    changed: () => undefined,
  })
  const stopping = new AbortController()
  const running = probes.run(stopping.signal)
  const warnings = await warningsDuring(async () => {
    for (let i = 0; i < 30; i++) {
      const uid = `uid-${i}`
      const now = new Date(clock.wallMs()).toISOString()
      const container = aContainer({ id: `id-${i}`, identity: { podUID: uid }, createdAt: now, startedAt: now })
      const readinessProbe = { tcpSocket: { port: 80 } }
      const pod = aPod({ name: uid, uid, containers: [{ name: 'main', image: 'app:1', readinessProbe }] })
      probes.observe(uid, { pod, containers: [container], podIP: '10.0.0.1', leaving: false })
    }
    await clock.advance(0)
  })
  t.same(warnings, [])
  stopping.abort()
  await clock.advance(2_000)
  await running
})

test('containers that ran before the agent have no result until they are probed', async (t) => {
  const clock = fakeClock()
  const older = found('old', { wallMs: () => clock.wallMs() - 3_600_000 })
  let answers: (answer: ProbeAnswer) => void = () => undefined
  const probes = prober({
    runtime: { exec: async () => ({ exitCode: 0, output: '' }) },
    network: {
      ask: () =>
        new Promise((resolve) => {
          answers = resolve
        }),
    },
    clock,
    random: () => 0.5,
    log: quietLog(t),
    recordEvent: () => undefined,
    changed: () => undefined,
  })
  const stopping = new AbortController()
  const running = probes.run(stopping.signal)
  const readinessProbe = { tcpSocket: { port: 80 } }
  const pod = aPod({ name: 'web', uid: 'uid', containers: [{ name: 'main', image: 'app:1', readinessProbe }] })
  probes.observe('uid', { pod, containers: [older], podIP: '10.0.0.1', leaving: false })
  t.equal(probes.unknownForMs('uid'), 5_000)
  await clock.advance(1_000)
  t.equal(probes.unknownForMs('uid'), 4_000)
  answers(well)
  await clock.settle()
  t.equal(probes.unknownForMs('uid'), 0)
  t.equal(probes.vitals('uid').get('old')?.ready, true)
  stopping.abort()
  await clock.advance(2_000)
  await running
})

test('a command is judged by its exit code, and one that does not end in time has failed', async (t) => {
  const clock = fakeClock()
  const events: string[] = []
  const commands: unknown[] = []
  let exec: () => Promise<{ exitCode: number | undefined; output: string }> = async () => ({ exitCode: 0, output: '' })
  const probes = prober({
    runtime: {
      exec: (id, command, timeoutMs) => {
        commands.push([id, command, timeoutMs])
        return exec()
      },
    },
    network: { ask: async () => well },
    clock,
    random: () => 0,
    log: quietLog(t),
    recordEvent: (_, { message }) => events.push(message),
    changed: () => undefined,
  })
  const stopping = new AbortController()
  const running = probes.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await clock.advance(2_000)
    await running
  })
  const readinessProbe = {
    exec: { command: ['check', '-q'] },
    timeoutSeconds: 2,
    periodSeconds: 10,
    failureThreshold: 1,
  }
  const pod = aPod({ name: 'web', uid: 'uid', containers: [{ name: 'main', image: 'app:1', readinessProbe }] })
  probes.observe('uid', { pod, containers: [found('one', clock)], podIP: '10.0.0.1', leaving: false })
  const isReady = () => probes.vitals('uid').get('one')?.ready
  await clock.advance(0)
  t.same(commands, [['one', ['check', '-q'], 2_000]])
  t.equal(isReady(), true)
  exec = async () => ({ exitCode: 1, output: 'disk full' })
  await clock.advance(10_000)
  t.equal(isReady(), false)
  exec = async () => ({ exitCode: 0, output: '' })
  await clock.advance(10_000)
  t.equal(isReady(), true)
  exec = () => Promise.reject(new Error('the container is gone'))
  await clock.advance(10_000)
  t.equal(isReady(), true, 'a command that could not be started shows nothing')
  exec = async () => ({ exitCode: undefined, output: '' })
  await clock.advance(10_000)
  t.equal(isReady(), false)
  t.same(events, [
    'Readiness probe failed: disk full',
    'Readiness probe failed: command timed out: "check -q" timed out after 2s',
  ])
})

test('the readiness of a container is probed as soon as its startup probe succeeds', async (t) => {
  const clock = fakeClock()
  const asked: string[] = []
  let startup = ill
  const probes = prober({
    runtime: { exec: async () => ({ exitCode: 0, output: '' }) },
    network: {
      ask: async (target) => {
        const port = 'port' in target ? String(target.port) : ''
        asked.push(port)
        return port === '1' ? startup : well
      },
    },
    clock,
    random: () => 0,
    log: quietLog(t),
    recordEvent: () => undefined,
    changed: () => undefined,
  })
  const stopping = new AbortController()
  const running = probes.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await clock.advance(2_000)
    await running
  })
  const probe = (port: number, periodSeconds: number) => ({ tcpSocket: { port }, periodSeconds })
  const main: Container = { name: 'main', image: 'app:1', startupProbe: probe(1, 7), readinessProbe: probe(2, 1000) }
  const pod = aPod({ name: 'web', uid: 'uid', containers: [main] })
  probes.observe('uid', { pod, containers: [found('one', clock)], podIP: '10.0.0.1', leaving: false })
  await clock.advance(0)
  t.same(asked, ['1'])
  startup = well
  await clock.advance(7_000)
  t.same(asked, ['1', '1', '2'])
  t.same(probes.vitals('uid').get('one'), { started: true, ready: true })
})

/** A prober of TCP probes, by port. */
function tcpProber(t: Test, more: { readonly random?: number } = {}) {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const world = {
    asked: [] as string[],
    answers: new Map<string, ProbeAnswer>(),
    events: [] as PodEvent[],
    changed: 0,
    commands: [] as (readonly string[])[],
  }
  const probes = prober({
    runtime: {
      async exec(id, command) {
        world.commands.push(command)
        world.asked.push(`${id} at ${clock.monotonicMs()}`)
        throw new Error('the container is gone')
      },
    },
    network: {
      ask: async (target) => {
        const port = 'port' in target ? String(target.port) : ''
        world.asked.push(`${port} at ${clock.monotonicMs()}`)
        return world.answers.get(port) ?? well
      },
    },
    clock,
    random: () => more.random ?? 0,
    log,
    recordEvent: (_, event) => world.events.push(event),
    changed: () => world.changed++,
  })
  const stopping = new AbortController()
  const running = probes.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await clock.advance(2_000)
    await running
  })
  const observe = (containers: readonly Container[], ...runtime: readonly RuntimeContainer[]) => {
    const pod = aPod({ name: 'web', uid: 'uid', containers: [...containers] })
    probes.observe('uid', { pod, containers: runtime, podIP: '10.0.0.1', leaving: false })
  }
  return { clock, log, probes, world, observe }
}

const tcp = (port: number, more: object = {}) => ({ tcpSocket: { port }, periodSeconds: 10, ...more })

test('liveness is probed within its first period, readiness at once, neither before its delay', async (t) => {
  const { clock, world, observe } = tcpProber(t, { random: 0.5 })
  const main = {
    name: 'main',
    image: 'app:1',
    livenessProbe: tcp(1),
    readinessProbe: tcp(2, { initialDelaySeconds: 3 }),
  }
  observe([main], found('one', clock))
  await clock.advance(9_999)
  t.same(world.asked, ['2 at 3000', '1 at 5000'])
  await clock.advance(5_001)
  t.same(world.asked.slice(2), ['2 at 13000', '1 at 15000'])
})

test('a startup probe that succeeds triggers the readiness of its own container only', async (t) => {
  const { clock, world, observe } = tcpProber(t)
  world.answers.set('1', ill)
  const slow = { periodSeconds: 1_000, failureThreshold: 100 }
  const main = {
    name: 'main',
    image: 'app:1',
    startupProbe: tcp(1),
    readinessProbe: tcp(2, slow),
    livenessProbe: tcp(3, slow),
  }
  const side = { name: 'side', image: 'app:1', readinessProbe: tcp(4, slow) }
  const other = aContainer({ ...found('two', clock), identity: { podUID: 'uid', containerName: 'side' } })
  observe([main, side], found('one', clock), other)
  await clock.advance(0)
  t.same(world.asked.sort(), ['1 at 0', '4 at 0'])
  world.answers.set('1', well)
  world.asked.length = 0
  await clock.advance(10_000)
  t.same(world.asked.sort(), ['1 at 10000', '2 at 10000'])
})

test('a failure is an Event with its container, again for another message and after a success', async (t) => {
  const { clock, world, observe } = tcpProber(t)
  const main = { name: 'main', image: 'app:1', livenessProbe: tcp(1, { failureThreshold: 100 }) }
  observe([main], found('one', clock))
  const answers: (ProbeAnswer | undefined)[] = [
    ill,
    ill,
    { result: 'failure', message: 'yes' },
    { result: 'unknown', message: '' },
    { result: 'failure', message: 'yes' },
    well,
    ill,
  ]
  for (const answer of answers) {
    if (answer !== undefined) world.answers.set('1', answer)
    await clock.advance(10_000)
  }
  t.same(
    world.events.map(({ message }) => message),
    ['Liveness probe failed: no', 'Liveness probe failed: yes', 'Liveness probe failed: no'],
  )
  t.match(world.events[0], { type: 'Warning', reason: 'Unhealthy', containerName: 'main' })
})

test('a container that does not run is not probed, and a pod without probes is forgotten', async (t) => {
  const { clock, world, probes, observe } = tcpProber(t)
  const main = { name: 'main', image: 'app:1', readinessProbe: tcp(1) }
  observe([main])
  await clock.advance(20_000)
  t.same(world.asked, [])
  observe([main], found('one', clock))
  await clock.advance(0)
  t.same(world.asked, ['1 at 20000'])
  observe([main], { ...found('one', clock), state: 'exited' })
  await clock.advance(60_000)
  t.equal(world.asked.length, 1)
  observe([main], found('two', clock))
  await clock.advance(0)
  t.equal(world.asked.length, 2, 'the next start')
  observe([{ name: 'main', image: 'app:1' }], found('two', clock))
  await clock.advance(60_000)
  t.equal(world.asked.length, 2)
  t.equal(probes.unknownForMs('uid'), 0)
})

test('a probe that is asked is not asked again before its answer', async (t) => {
  const clock = fakeClock()
  let asked = 0
  const probes = prober({
    runtime: { exec: async () => ({ exitCode: 0, output: '' }) },
    network: {
      ask: (_, __, signal) => {
        asked++
        return aborted(signal).then(() => ill)
      },
    },
    clock,
    random: () => 0,
    log: quietLog(t),
    recordEvent: () => undefined,
    changed: () => undefined,
  })
  const stopping = new AbortController()
  const running = probes.run(stopping.signal)
  const pod = aPod({ name: 'web', uid: 'uid', containers: [{ name: 'main', image: 'app:1', readinessProbe: tcp(1) }] })
  probes.observe('uid', { pod, containers: [found('one', clock)], podIP: '10.0.0.1', leaving: false })
  await clock.advance(60_000)
  t.equal(asked, 1)
  stopping.abort()
  await clock.advance(2_000)
  await running
})

test('a probe whose answer takes longer than its period is run again as soon as it has ended', async (t) => {
  const clock = fakeClock()
  const asked: number[] = []
  const probes = prober({
    runtime: { exec: async () => ({ exitCode: 0, output: '' }) },
    network: {
      async ask(_, timeoutMs) {
        asked.push(clock.monotonicMs())
        await clock.sleep(timeoutMs)
        return ill
      },
    },
    clock,
    random: () => 0,
    log: quietLog(t),
    recordEvent: () => undefined,
    changed: () => undefined,
  })
  const stopping = new AbortController()
  const running = probes.run(stopping.signal)
  const livenessProbe = tcp(1, { timeoutSeconds: 12 })
  const pod = aPod({ name: 'web', uid: 'uid', containers: [{ name: 'main', image: 'app:1', livenessProbe }] })
  probes.observe('uid', { pod, containers: [found('one', clock)], podIP: '10.0.0.1', leaving: false })
  await clock.advance(36_000)
  t.same(asked.slice(0, 3), [0, 12_000, 24_000])
  t.match(probes.vitals('uid').get('one')?.failed, { why: /failed liveness probe/ }, 'its threshold is reached')
  stopping.abort()
  await clock.advance(15_000)
  await running
})

/** One container for each port, with a readiness probe. */
function severalProbes(t: Test, probes: { readonly [port: number]: object }) {
  const { clock, world, observe } = tcpProber(t)
  const containers = Object.entries(probes).map(([port, more]) => ({
    name: `c${port}`,
    image: 'app:1',
    readinessProbe: tcp(Number(port), more),
  }))
  const running = containers.map(({ name }) =>
    aContainer({ ...found(name, clock), identity: { podUID: 'uid', containerName: name } }),
  )
  observe(containers, ...running)
  const times = (port: number) =>
    world.asked.filter((one) => one.startsWith(`${port} `)).map((one) => Number(one.split(' at ')[1]))
  return { clock, world, times }
}

test('a probe is run with one that is due, a tenth of its period early at most, and then always', async (t) => {
  const { clock, times } = severalProbes(t, {
    1: {},
    2: { initialDelaySeconds: 0.5 },
    3: { initialDelaySeconds: 2 },
  })
  await clock.advance(25_000)
  t.same(times(1), [0, 10_000, 20_000])
  t.same(times(2), [500, 10_000, 20_000], 'half a second early once, but not before its delay')
  t.same(times(3), [2_000, 12_000, 22_000], 'two seconds are too early')
})

test('a probe with a short period is hardly run early', async (t) => {
  const { clock, times } = severalProbes(t, {
    1: { periodSeconds: 1 },
    2: { periodSeconds: 1, initialDelaySeconds: 0.2 },
    3: { periodSeconds: 1, initialDelaySeconds: 0.1 },
  })
  await clock.advance(2_500)
  t.same(times(1), [0, 1_000, 2_000])
  t.same(times(2), [200, 1_200, 2_200])
  t.same(times(3), [100, 1_000, 2_000])
})

test('a command is not run early: commands of many containers stay apart', async (t) => {
  const exec = { command: ['check'] }
  const { clock, world } = severalProbes(t, {
    1: { exec, initialDelaySeconds: 0.3 },
    2: { exec, initialDelaySeconds: 0.6 },
    3: { initialDelaySeconds: 0.9 },
    4: {},
  })
  await clock.advance(11_000)
  const later = world.asked.filter((one) => Number(one.split(' at ')[1]) >= 10_000)
  t.same(later, ['4 at 10000', 'c1 at 10300', 'c2 at 10600', '3 at 10600'])
})

test('of many probes that are due soon only a few are run with the one that is due', async (t) => {
  const others = Array.from({ length: 29 }, (_, i) => [i + 2, { initialDelaySeconds: 0.5 }])
  const { clock, world } = severalProbes(t, { 1: {}, ...Object.fromEntries(others) })
  const askedAt = (ms: number) => world.asked.filter((one) => one.endsWith(` at ${ms}`)).length
  await clock.advance(11_000)
  t.same([0, 500, 10_000, 10_500].map(askedAt), [1, 29, 8, 22])
})

test('a command that cannot be started is a detail of the log', async (t) => {
  const { clock, log, world, observe } = tcpProber(t)
  observe(
    [{ name: 'main', image: 'app:1', readinessProbe: { exec: { command: ['check'] } } }],
    found('0123456789abcdef', clock),
  )
  await clock.advance(0)
  t.match(log.lines, [
    {
      level: 'debug',
      message: 'Probe not run',
      facts: { container: '0123456789ab', error: { message: 'the container is gone' } },
    },
  ])
  t.same(world.events, [])
})

test('a command has the variables of its container that have a value of their own', async (t) => {
  const { clock, observe, world } = tcpProber(t)
  const env = [
    { name: 'PORT', value: '80' },
    { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
  ]
  const command = ['check', '$(PORT)', '$(NODE)', '$(OTHER)', '$$(PORT)']
  observe([{ name: 'main', image: 'app:1', env, readinessProbe: { exec: { command } } }], found('one', clock))
  await clock.advance(0)
  t.same(world.commands, [['check', '80', '', '$(OTHER)', '$(PORT)']])
})

test('a redirect that a probe does not follow is a success, with one Event', async (t) => {
  const { clock, probes, world, observe } = tcpProber(t)
  world.answers.set('1', { result: 'success', message: 'Probe terminated redirects', isWarning: true })
  observe([{ name: 'main', image: 'app:1', readinessProbe: tcp(1) }], found('one', clock))
  await clock.advance(30_000)
  t.equal(probes.vitals('uid').get('one')?.ready, true)
  t.match(world.events, [{ reason: 'ProbeWarning', message: 'Readiness probe warning: Probe terminated redirects' }])
  t.equal(world.events.length, 1)
})

test('a probe of a port that its container does not name has an Event, and no result', async (t) => {
  const { clock, world, observe } = tcpProber(t)
  const main = { name: 'main', image: 'app:1', ports: [{ name: 'web', containerPort: 80 }] }
  observe([{ ...main, livenessProbe: { tcpSocket: { port: 'wbe' } } }], found('one', clock))
  await clock.advance(60_000)
  t.match(world.events, [
    { reason: 'Unhealthy', message: 'Liveness probe errored: port wbe not found in container main' },
  ])
  t.equal(world.events.length, 1)
  t.same(world.asked, [])
})

test('the reason of a stop after a failed probe depends on whether the container is restarted', async (t) => {
  const reasonFor = async (restartPolicy: 'Always' | 'Never', isSidecar: boolean) => {
    const { clock, world, probes } = tcpProber(t)
    world.answers.set('1', ill)
    const main: Container = { name: 'main', image: 'app:1', livenessProbe: tcp(1, { failureThreshold: 1 }) }
    const base = aPod({ name: 'web', uid: 'uid', restartPolicy, containers: [main] })
    const initContainers: readonly Container[] = [{ ...main, restartPolicy: 'Always' }]
    const pod = isSidecar ? { ...base, spec: { ...base.spec, initContainers, containers: [] } } : base
    probes.observe('uid', { pod, containers: [found('one', clock)], podIP: '10.0.0.1', leaving: false })
    await clock.advance(20_000)
    return probes.vitals('uid').get('one')?.failed?.why
  }
  t.equal(await reasonFor('Always', false), 'Container main failed liveness probe, will be restarted')
  t.equal(await reasonFor('Never', false), 'Container main failed liveness probe')
  t.equal(await reasonFor('Never', true), 'Init container main failed liveness probe')
})
