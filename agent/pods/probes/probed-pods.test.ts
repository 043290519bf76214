import { test } from 'tap'
import type { Container } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import { systemTime, type TrustedTime } from '../record/trusted-time.ts'
import type { ProbeKind, ProbeResult } from './probe-worker.ts'
import { probedPods } from './probed-pods.ts'

const probe = { tcpSocket: { port: 80 } }
const main = (...kinds: readonly ProbeKind[]): Container => ({
  ...{ name: 'main', image: 'app:1' },
  ...Object.fromEntries(kinds.map((kind) => [`${kind}Probe`, probe])),
})

function watch({ date }: { readonly date?: Partial<TrustedTime> } = {}) {
  const clock = fakeClock()
  const pods = probedPods(clock, { ...systemTime(clock), ...date })
  const running = (id: string, more: Partial<RuntimeContainer> = {}, agoMs = 0) =>
    aContainer({ id, startedAt: new Date(clock.wallMs() - agoMs).toISOString(), ...more })
  const observe = (containers: readonly Container[], found: readonly RuntimeContainer[], more: object = {}) => {
    const pod = aPod({ name: 'web', uid: 'uid', containers, ...more })
    return pods.observe('uid', { pod, containers: found, podIP: '10.244.0.5', leaving: false })
  }
  const answer = (kind: ProbeKind, result: ProbeResult, name = 'main') => {
    const worker = pods.worker(`uid/${name}/${kind}`)
    if (worker === undefined) throw new Error(`no ${kind} probe`)
    worker.state = { ...worker.state, result, ...(result !== 'unknown' && { answer: result }) }
  }
  return { clock, pods, running, observe, answer }
}

test('each probe of a container is watched, by pod, container and kind; a pod without probes is not', async (t) => {
  const { pods, running, observe } = watch()
  t.equal(observe([main()], [running('one')]), undefined)
  t.equal(pods.get('uid'), undefined)
  const sidecar = { ...main('startup'), name: 'side', restartPolicy: 'Always' }
  observe([main('readiness', 'liveness')], [running('one')], { spec: { initContainers: [sidecar] } })
  const keys = ['uid/side/startup', 'uid/main/liveness', 'uid/main/readiness']
  t.same(
    pods.get('uid')?.workers.map(({ key }) => key),
    keys,
  )
  t.equal(pods.worker('uid/main/liveness')?.kind, 'liveness')
  t.equal(pods.worker('uid/main/startup'), undefined)
  t.equal(pods.worker('other/main/liveness'), undefined)
  t.match(pods.counts(), [
    { kind: 'startup', container: 'side', pod: 'web', namespace: 'default', podUID: 'uid' },
    { kind: 'liveness', container: 'main' },
    { kind: 'readiness', container: 'main' },
  ])
  t.same(pods.forget('uid'), keys)
  t.same([pods.get('uid'), pods.forget('uid'), pods.counts()], [undefined, [], []])
})

test('an observation returns the probes of a container that was started since the last one', async (t) => {
  const { running, observe } = watch()
  const found = (containers: readonly RuntimeContainer[]) =>
    observe([main('readiness')], containers)?.map(([{ kind }, { id }]) => `${kind} of ${id}`)
  t.same(found([]), [])
  t.same(found([running('one', { state: 'created' })]), [])
  t.same(found([running('one')]), ['readiness of one'])
  t.same(found([running('one')]), [], 'once')
  t.same(found([running('one', { state: 'exited' })]), [])
  const second = running('two', { identity: { ...running('two').identity, attempt: 1 } })
  t.same(found([running('one', { state: 'exited' }), second]), ['readiness of two'], 'the newest counts')
})

test('a probe whose specification changes keeps its results', async (t) => {
  const { pods, running, observe, answer } = watch()
  observe([main('readiness')], [running('one')])
  answer('readiness', 'success')
  const changed = { ...main('readiness'), readinessProbe: { ...probe, periodSeconds: 30 } }
  observe([changed], [running('one')])
  t.equal(pods.worker('uid/main/readiness')?.probe.periodSeconds, 30)
  t.match(pods.vitals('uid').get('one'), { ready: true })
  t.equal(pods.vitals('other').size, 0)
})

test('the start of a container is kept on the monotonic clock, as old as the machine at most', async (t) => {
  const { clock, pods, running, observe } = watch({ date: { uptimeMs: () => 60_000 } })
  await clock.advance(100_000)
  const startOf = (id: string, more: Partial<RuntimeContainer>, agoMs = 0) => {
    observe([main('liveness')], [running(id, more, agoMs)])
    return pods.startedAtMs(id)
  }
  t.equal(startOf('a', {}, 10_000), 90_000)
  t.equal(startOf('b', {}, 3_600_000), 40_000, 'a clock that was wrong')
  t.equal(startOf('c', {}, -10_000), 100_000, 'a date in the future')
  t.equal(startOf('d', { state: 'exited' }), undefined)
  t.equal(startOf('e', { startedAt: undefined }), undefined)
  t.equal(pods.startedAtMs('a'), undefined, 'one that the engine does not have is forgotten')
  startOf('f', {}, 10_000)
  await clock.advance(5_000)
  t.equal(startOf('f', { startedAt: '2020-01-01T00:00:00Z' }), 90_000, 'it is read once')
  pods.forget('uid')
  t.equal(pods.startedAtMs('f'), undefined)
  const dateless = watch({ date: { nowMs: () => undefined } })
  dateless.observe([main('liveness')], [dateless.running('a', {}, 10_000)])
  t.equal(dateless.pods.startedAtMs('a'), 0, 'without a date it counts as started now')
})

test('a probe is due by the facts of its container', async (t) => {
  const facts = (restartPolicy: 'Always' | 'Never', ...kinds: readonly ProbeKind[]) => {
    const { clock, pods, running, observe, answer } = watch()
    const one = running('one', {}, 4_000)
    const factsOf = (found: RuntimeContainer) => {
      const [watched, worker] = [pods.get('uid'), pods.worker('uid/main/liveness')]
      if (watched === undefined || worker === undefined) throw new Error('not watched')
      return pods.factsOf(worker, found, watched)
    }
    observe([main('liveness', ...kinds)], [one], { restartPolicy })
    return { clock, running, one, factsOf, answer }
  }
  const plain = facts('Always')
  await plain.clock.advance(1_000)
  const running = { id: 'one', running: true, runsForMs: 5_000, started: true, mayRestart: true, podLeaving: false }
  t.same(plain.factsOf(plain.one), running)
  t.match(plain.factsOf({ ...plain.one, state: 'exited' }), { running: false })
  t.match(plain.factsOf(plain.running('two')), { id: 'two', runsForMs: 0 })
  t.match(facts('Never').factsOf(plain.one), { mayRestart: false })
  const slow = facts('Always', 'startup')
  t.match(slow.factsOf(slow.one), { started: false })
  slow.answer('startup', 'success')
  t.match(slow.factsOf(slow.one), { started: true })
  t.match(slow.factsOf(slow.running('two')), { started: false }, 'the startup probe of another run')
})

test('a container is ready once it has started and its readiness probe succeeded', async (t) => {
  const vital = (answers: { readonly [Kind in ProbeKind]?: ProbeResult }) => {
    const { pods, running, observe, answer } = watch()
    const kinds: readonly ProbeKind[] = ['startup', 'liveness', 'readiness']
    const own = kinds.filter((kind) => kind in answers)
    observe([main(...own), { name: 'plain', image: 'app:1' }], [running('one')])
    for (const kind of own) answer(kind, answers[kind] ?? 'unknown')
    return pods.vitals('uid').get('one')
  }
  t.same(vital({ liveness: 'success' }), { started: true, ready: true })
  t.same(vital({ readiness: 'failure' }), { started: true, ready: false })
  t.same(vital({ readiness: 'success' }), { started: true, ready: true })
  t.same(vital({ startup: 'unknown', readiness: 'success' }), { started: false, ready: false })
  t.same(vital({ startup: 'unknown' }), { started: false, ready: false })
  t.same(vital({ startup: 'success', readiness: 'success' }), { started: true, ready: true })
  const failed = (kind: string) => ({ why: `Container main failed ${kind} probe, will be restarted`, byProbe: true })
  t.same(vital({ liveness: 'failure' }), { started: true, ready: true, failed: failed('liveness') })
  t.same(vital({ startup: 'failure', liveness: 'success' }), {
    started: false,
    ready: false,
    failed: failed('startup'),
  })
})

test('a new run begins with the first results, and a failed probe may have its own grace period', async (t) => {
  const { pods, running, observe, answer } = watch()
  const graced = { ...main(), livenessProbe: { ...probe, terminationGracePeriodSeconds: 0 } }
  observe([graced, { name: 'plain', image: 'app:1' }], [running('one')])
  answer('liveness', 'failure')
  t.match(pods.vitals('uid').get('one')?.failed, { graceSeconds: 0 })
  observe([graced], [running('one', { state: 'exited' }), running('two', { createdAt: '2026-01-02T00:00:00Z' })])
  t.same([...pods.vitals('uid')], [['two', { started: true, ready: true }]])
})

test('what a new agent found running has no result for five seconds, until it is probed', async (t) => {
  const { clock, pods, running, observe, answer } = watch()
  t.equal(pods.unknownForMs('uid'), 0, 'a pod that it does not have')
  const unknown = (kinds: readonly ProbeKind[], agoMs: number, more: Partial<RuntimeContainer> = {}) => {
    pods.forget('uid')
    observe([main(...kinds)], [running('one', more, agoMs)])
    return pods.unknownForMs('uid')
  }
  await clock.advance(1_000)
  t.equal(unknown(['readiness'], 60_000), 4_000)
  t.equal(unknown(['startup'], 60_000), 4_000)
  t.equal(unknown(['liveness'], 60_000), 0, 'it does not decide whether it is ready')
  t.equal(unknown(['readiness'], 500), 0, 'started by this agent')
  t.equal(unknown(['readiness'], 60_000, { state: 'exited' }), 0)
  unknown(['readiness'], 60_000)
  answer('readiness', 'failure')
  t.equal(pods.unknownForMs('uid'), 0)
  await clock.advance(4_000)
  t.equal(unknown(['readiness'], 60_000), 0)
})
