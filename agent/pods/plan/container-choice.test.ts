import { test } from 'tap'
import type { Container } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import { sortContainers } from '../record/pod-containers.ts'
import { backoffKey, newRecord, type PodRecord } from '../record/pod-record.ts'
import type { RestartPolicy } from '../record/restarts.ts'
import { containerHash } from '../record/spec-hash.ts'
import { choose, stopOf } from './container-choice.ts'
import type { PodFacts } from './pod-steps.ts'

const main: Container = { name: 'main', image: 'app:1' }
const plain = aPod({ name: 'web', containers: [main] })
const pod = { ...plain, spec: { ...plain.spec, terminationGracePeriodSeconds: 20 } }
const sandbox = aContainer({ id: 'sandbox', identity: { containerName: '' } })
const nowMs = 1_000_000
const present = new Map([['main', { present: true, pull: { state: 'none' } }]] as const)

type Over = Partial<Omit<RuntimeContainer, 'identity'>> & { readonly attempt?: number; readonly hash?: string }

function instance({ attempt = 0, hash = containerHash(main), ...over }: Over = {}): RuntimeContainer {
  return aContainer({ id: `main-${attempt}`, identity: { attempt, specHash: hash }, ...over })
}

const failed = { state: 'exited', exitCode: 1, finishedAt: '2026-01-01T00:00:09Z' } as const
const succeeded = { ...failed, exitCode: 0 } as const

function facts(record: Partial<PodRecord> = {}, over: Partial<PodFacts> = {}): PodFacts {
  return { containers: [], images: present, record: { ...newRecord, ...record }, nowMs, ...over }
}

function chosen(instances: readonly RuntimeContainer[], given = facts(), policy?: RestartPolicy, container = main) {
  return choose(pod, container, sortContainers([sandbox, ...instances]), given, policy)
}

/** The attempt that is started; undefined: it waits, or keeps running. */
function startedAttempt({ start }: ReturnType<typeof choose>): number | undefined {
  const [step] = start?.(sandbox) ?? []
  return step?.step === 'startContainer' ? step.attempt : undefined
}

test('a container that does not exist is started as its first attempt', async (t) => {
  const choice = chosen([])
  t.equal(startedAttempt(choice), 0)
  t.same(choice.waiting, ['main', { reason: 'ContainerCreating', message: '' }])
  t.match(choice.start?.(sandbox), [{ container: main, sandbox, previous: undefined, imagePulled: false }])
  t.equal(startedAttempt(chosen([], facts({ restartCounts: new Map([['main', 4]]) }))), 5, 'after the known restarts')
})

test('a container that runs as specified is kept', async (t) => {
  const choice = chosen([instance()])
  t.equal(choice.start, undefined)
  t.equal(choice.stop, undefined)
})

test('a running container is replaced when its specification changes', async (t) => {
  const { stop, start } = chosen([instance({ hash: 'other' })])
  const why = 'Container main definition changed, will be restarted'
  t.match(stop, { step: 'stop', graceSeconds: 20, why, replace: true })
  t.same(start?.(sandbox), [])
  const sidecar = chosen([instance({ hash: 'other' })], facts(), undefined, { ...main, restartPolicy: 'Always' })
  t.match(sidecar.stop, { why: 'Init container main definition changed' })
  t.equal(chosen([instance({ hash: 'other' })], facts({}, { mayBeOld: true })).stop, undefined, 'an old checkpoint')
  const inits = { ...plain, spec: { containers: [{ name: 'b', image: 'app:1' }], initContainers: [main] } }
  const init = choose(inits, main, sortContainers([sandbox, instance({ hash: 'other' })]), facts())
  t.equal(init.stop, undefined, 'an init container runs to its end')
  const setup = { ...plain, spec: { ...plain.spec, initContainers: [{ name: 'setup', image: 'app:1' }] } }
  const beside = choose(setup, main, sortContainers([sandbox, instance({ hash: 'other' })]), facts())
  t.match(beside.stop, { why }, 'a container beside an init container is replaced')
})

test('a container in another sandbox, or in none that runs, is stopped', async (t) => {
  for (const found of [
    sortContainers([sandbox, instance({ sandboxID: 'lost' })]),
    sortContainers([instance()]),
    sortContainers([{ ...sandbox, state: 'exited' }, instance()]),
  ]) {
    const { stop } = choose(pod, main, found, facts())
    t.match(stop, { step: 'stop', graceSeconds: 20, why: 'Stopping container main' })
    t.equal(stop?.step === 'stop' && stop.replace, undefined)
  }
})

test('a container that failed a probe is stopped with the grace period of the probe, at least two seconds', async (t) => {
  const probes = (graceSeconds?: number) => {
    const failed = {
      why: 'Container main failed liveness probe, will be restarted',
      ...(graceSeconds !== undefined && { graceSeconds }),
    }
    return facts({ probes: new Map([['main-0', { ready: false, started: true, failed }]]) })
  }
  t.match(chosen([instance()], probes(9)).stop, { graceSeconds: 9, why: /failed liveness probe/ })
  t.match(chosen([instance()], probes(0)).stop, { graceSeconds: 2 })
  t.match(chosen([instance()], probes()).stop, { graceSeconds: 20 })
})

test('a container that failed a probe starts again with OnFailure, also after it ended with 0', async (t) => {
  const failed = { why: 'Container main failed liveness probe, will be restarted', byProbe: true } as const
  const probes = facts({ probes: new Map([['main-0', { ready: false, started: true, failed }]]) })
  for (const policy of ['Always', 'OnFailure'] as const) {
    t.match(chosen([instance()], probes, policy).stop, { replace: true }, policy)
    const after = chosen([instance(succeeded)], facts({ replacing: new Set(['main-0']) }), policy)
    t.equal(startedAttempt(after), 1, policy)
  }
  const { stop } = chosen([instance()], probes, 'Never')
  t.equal(stop?.step === 'stop' && stop.replace, undefined, 'not with Never')
})

test('a second instance waits until an older one that still runs has ended', async (t) => {
  const choice = chosen([instance({ attempt: 1, ...failed }), instance()])
  t.same(choice.start?.(sandbox), [])
  t.equal(choice.stop, undefined)
})

test('the restart policy decides about a container that ended', async (t) => {
  t.equal(chosen([instance(succeeded)], facts(), 'OnFailure').start, undefined)
  t.equal(chosen([instance(failed)], facts(), 'Never').start, undefined)
  t.equal(startedAttempt(chosen([instance(failed)], facts(), 'OnFailure')), 1)
  t.equal(startedAttempt(chosen([instance(succeeded)], facts())), 1, 'the policy of the pod: Always')
})

test('an ended container that was stopped for a change is started whatever the policy', async (t) => {
  const ended = instance({ ...failed, hash: 'other' })
  t.equal(chosen([ended], facts(), 'Never').start, undefined)
  t.equal(startedAttempt(chosen([ended], facts({ replacing: new Set(['main-0']) }), 'Never')), 1)
})

test('a container that a probe stopped after it ran longer than its back-off is started at once', async (t) => {
  const backoffs = new Map([[backoffKey(main), { waitMs: 40_000, restartedAtMs: nowMs - 45_000 }]])
  const both = [instance({ attempt: 1, ...failed }), instance(failed)]
  const after = (ranMs: number, replacing: readonly string[]) => {
    const exits = new Map([
      ['main-1', nowMs],
      ['main-0', nowMs - ranMs],
    ])
    return startedAttempt(chosen(both, facts({ backoffs, exits, replacing: new Set(replacing) })))
  }
  t.equal(after(45_000, ['main-1']), 2)
  t.equal(after(39_000, ['main-1']), undefined)
  t.equal(after(45_000, []), undefined, 'one that crashed waits')
})

test('a container that crashes waits for its back-off, counted from its exit', async (t) => {
  const backoffs = new Map([[backoffKey(main), { waitMs: 40_000, restartedAtMs: nowMs - 60_000 }]])
  const after = (exitedMsAgo: number) =>
    chosen([instance(failed)], facts({ backoffs, exits: new Map([['main-0', nowMs - exitedMsAgo]]) }))
  const waits = after(10_000)
  t.equal(waits.againInMs, 30_000)
  t.same(waits.waiting, [
    'main',
    {
      reason: 'CrashLoopBackOff',
      message: `back-off 40s restarting failed container=main pod=web_default(${pod.metadata.uid})`,
    },
  ])
  t.same(waits.start?.(sandbox), [])
  t.equal(startedAttempt(after(39_999)), undefined)
  t.equal(startedAttempt(after(40_000)), 1)
  t.equal(chosen([instance(failed)], facts({ backoffs })).againInMs, 40_000, 'an exit that was just seen')
  const changed = chosen([instance({ ...failed, hash: 'other' })], facts({ backoffs }))
  t.equal(startedAttempt(changed), 1, 'a changed specification does not wait')
})

test('a container that the engine could not start shows the error of the engine while it waits', async (t) => {
  const backoffs = new Map([[backoffKey(main), { waitMs: 10_000, restartedAtMs: nowMs - 1000 }]])
  const refused = instance({ state: 'created', error: 'no such file' })
  t.same(chosen([refused], facts({ backoffs })).waiting, [
    'main',
    { reason: 'RunContainerError', message: 'no such file' },
  ])
})

test('a problem of a start is shown until the next attempt is due', async (t) => {
  const problem = (retryAtMs: number) =>
    facts({
      startProblems: new Map([
        ['main', { reason: 'CreateContainerConfigError', message: 'no ConfigMap', retryAtMs, failures: 1 }],
      ]),
    })
  const waits = chosen([], problem(nowMs + 5_000))
  t.same(waits.waiting, ['main', { reason: 'CreateContainerConfigError', message: 'no ConfigMap' }])
  t.equal(waits.againInMs, 5_000)
  t.same(waits.start?.(sandbox), [])
  t.equal(startedAttempt(chosen([], problem(nowMs))), 0)
})

test('an image is inspected, pulled and awaited before the start', async (t) => {
  const withImage = (images: PodFacts['images']) => chosen([], facts({}, { images }))
  t.same(withImage(new Map()).first, { step: 'lookForImage', image: 'app:1' })
  t.match(withImage(new Map([['main', { present: false, pull: { state: 'none' } }]])).first, {
    step: 'pullImage',
    image: 'app:1',
    container: main,
  })
  const pull = { state: 'failed', message: 'no route', failedMsAgo: 20_000, retryInMs: 7_000 } as const
  t.same(withImage(new Map()).start?.(sandbox), [])
  t.same(withImage(present).start?.(sandbox).length, 1)
  const waits = withImage(new Map([['main', { present: false, pull }]]))
  t.same(waits.start?.(sandbox), [])
  t.match(waits.waiting, ['main', { reason: 'ImagePullBackOff' }])
  t.equal(waits.againInMs, 7_000)
  const invalid = chosen([], facts({}, { images: new Map() }), undefined, { name: 'main', image: 'UPPER CASE' })
  t.equal(invalid.first, undefined, 'an invalid name is not looked for')
  t.match(invalid.waiting, ['main', { reason: 'InvalidImageName' }])
  t.notOk('againInMs' in invalid, 'and does not become valid by itself')
})

test('a container that ran here before starts from the image that is present while its registry fails', async (t) => {
  const latest: Container = { name: 'main', image: 'app:latest' }
  const pull = { state: 'failed', message: 'no route', failedMsAgo: 20_000, retryInMs: 7_000 } as const
  const images = new Map([['main', { present: true, pull }]])
  const ended = instance({ ...failed, hash: containerHash(latest) })
  const attemptOf = (instances: readonly RuntimeContainer[], record: Partial<PodRecord> = {}) =>
    startedAttempt(chosen(instances, facts(record, { images }), undefined, latest))
  t.equal(attemptOf([]), undefined)
  t.equal(attemptOf([ended]), 1)
  t.equal(attemptOf([], { restartCounts: new Map([['main', 4]]) }), 5, 'its instances were removed since')
})

test('ended instances beyond those that are kept are removed', async (t) => {
  const instances = [3, 2, 1, 0].map((attempt) => instance({ attempt, ...failed }))
  const removed = (keptDead?: number) =>
    chosen(instances, facts({}, keptDead === undefined ? {} : { keptDead })).tidy?.map(
      (step) => step.step === 'remove' && step.target.id,
    )
  t.same(removed(), ['main-1', 'main-0'])
  t.same(removed(0), ['main-2', 'main-1', 'main-0'])
  t.same(removed(3), [])
  const tidied = (newest: RuntimeContainer, older: RuntimeContainer, policy: RestartPolicy) =>
    chosen([newest, older], facts({}, { keptDead: 0 }), policy).tidy
  const older = instance(failed)
  t.same(tidied(instance({ attempt: 1 }), older, 'Always'), [{ step: 'remove', target: older }], 'beside one that runs')
  t.same(tidied(instance({ attempt: 1, ...failed }), older, 'Never'), [{ step: 'remove', target: older }])
  t.same(tidied(instance({ attempt: 1 }), instance(), 'Always'), [], 'one that runs is not removed')
})

test('a stop is repeated only with an earlier deadline', async (t) => {
  const target = instance()
  const stop = (untilMs?: number) =>
    stopOf(target, 10, facts(untilMs === undefined ? {} : { stopping: new Map([['main-0', untilMs]]) }), 'why')
  t.same(stop(), { step: 'stop', target, graceSeconds: 10, why: 'why' })
  t.equal(stop(nowMs + 10_000), undefined)
  t.same(stop(nowMs + 10_001), { step: 'stop', target, graceSeconds: 10, why: 'why' })
})
