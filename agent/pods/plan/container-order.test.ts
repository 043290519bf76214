import { test } from 'tap'
import type { Container, Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import { sortContainers } from '../record/pod-containers.ts'
import { newRecord, type PodRecord } from '../record/pod-record.ts'
import { containerHash } from '../record/spec-hash.ts'
import { chooseInOrder } from './container-order.ts'

const image = 'app:1'
const named = (name: string, over: Partial<Container> = {}): Container => ({ name, image, ...over })
const sidecar = (name: string) => named(name, { restartPolicy: 'Always' })
const sandbox = aContainer({ id: 'sandbox', identity: { containerName: '' } })

function aPodOf(initContainers: readonly Container[], containers = [named('main')], restartPolicy?: string): Pod {
  const plain = aPod({ name: 'web', containers })
  return { ...plain, spec: { containers, initContainers, ...(restartPolicy !== undefined && { restartPolicy }) } }
}

/** A container as specified by `spec`; of the present sandbox. */
function found(spec: Container, over: Partial<Omit<RuntimeContainer, 'identity'>> = {}): RuntimeContainer {
  return aContainer({ id: spec.name, identity: { containerName: spec.name, specHash: containerHash(spec) }, ...over })
}

const succeeded = { state: 'exited', exitCode: 0, finishedAt: '2026-01-01T00:00:09Z' } as const
const failed = { ...succeeded, exitCode: 1 } as const

function choices(pod: Pod, containers: readonly RuntimeContainer[], record: Partial<PodRecord> = {}) {
  const names = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map(({ name }) => name)
  const images = new Map(names.map((name) => [name, { present: true, pull: { state: 'none' } }] as const))
  const facts = { containers, images, record: { ...newRecord, ...record }, nowMs: 1_000_000 }
  return chooseInOrder(pod, sortContainers(containers), facts)
}

/**
 * What is removed, started and stopped, in this order: `remove a`, `start a`, `stop b`. `wait a`: shown as being created. In the
 * sandbox that is given, or in one that runs.
 */
function planned(
  pod: Pod,
  containers: readonly RuntimeContainer[],
  record: Partial<PodRecord> = {},
  sandboxes: readonly RuntimeContainer[] = [sandbox],
): readonly string[] {
  return choices(pod, [...sandboxes, ...containers], record).flatMap(({ stop, start, waiting, tidy = [] }) => {
    const steps = start === undefined ? [] : start(sandbox)
    return [
      ...tidy.flatMap((step) => (step.step === 'remove' ? [`remove ${step.target.id}`] : [])),
      ...(stop?.step === 'stop' ? [`stop ${stop.target.id}`] : []),
      ...steps.flatMap((step) => (step.step === 'startContainer' ? [`start ${step.container.name}`] : [])),
      ...(waiting?.[1].reason === 'ContainerCreating' && steps.length === 0 ? [`wait ${waiting[0]}`] : []),
    ]
  })
}

const [a, b] = [named('a'), named('b')]
const main = named('main')

test('containers without init containers start together', async (t) => {
  t.same(planned(aPodOf([], [a, b]), []), ['start a', 'start b'])
})

test('init containers run one after the other, and the others wait for them', async (t) => {
  const pod = aPodOf([a, b])
  t.same(planned(pod, []), ['start a', 'wait main'])
  t.same(planned(pod, [found(a)]), ['wait main'])
  t.same(planned(pod, [found(a, succeeded)]), ['start b', 'wait main'])
  t.same(planned(pod, [found(a, succeeded), found(b)]), ['wait main'])
  t.same(planned(pod, [found(a, succeeded), found(b, succeeded)]), ['start main'])
})

test('an init container that failed runs again, unless the pod never restarts', async (t) => {
  t.same(planned(aPodOf([a, b]), [found(a, failed)]), ['start a', 'wait main'])
  t.same(planned(aPodOf([a, b], [main], 'OnFailure'), [found(a, failed)]), ['start a', 'wait main'])
  t.same(planned(aPodOf([a, b], [main], 'Never'), [found(a, failed)]), [])
  t.same(planned(aPodOf([a, b], [main], 'Never'), [found(a, succeeded)]), ['start b', 'wait main'])
})

test('an init container of a lost sandbox runs again, also if it succeeded', async (t) => {
  for (const policy of ['Always', 'Never']) {
    t.same(planned(aPodOf([a], [main], policy), [found(a, { ...succeeded, sandboxID: 'lost' })]), [
      'start a',
      'wait main',
    ])
  }
})

test('without a sandbox that runs, init containers start from the first', async (t) => {
  const ended = [found(a, succeeded), found(main, failed)]
  t.same(planned(aPodOf([a]), [], {}, []), ['start a', 'wait main'])
  t.same(planned(aPodOf([a]), ended, {}, []), ['start a', 'wait main'])
  t.same(planned(aPodOf([a]), ended, {}, [{ ...sandbox, state: 'exited' }]), ['start a', 'wait main'])
})

test('containers of a lost sandbox stop, wait or stay ended while init containers run', async (t) => {
  const lost = { sandboxID: 'lost' }
  t.same(planned(aPodOf([a]), [found(main, lost)]), ['start a', 'stop main'])
  t.same(planned(aPodOf([a], [main, b], 'Never'), [found(main, { ...succeeded, ...lost })]), ['start a', 'wait b'])
  const attempts = [2, 1, 0].map((attempt) =>
    aContainer({ id: `main-${attempt}`, identity: { containerName: 'main', attempt }, ...failed, ...lost }),
  )
  t.same(planned(aPodOf([a]), attempts), ['start a', 'remove main-0', 'wait main'])
})

test('init containers do not run again once a regular container was started in the sandbox', async (t) => {
  t.same(planned(aPodOf([a]), [found(main)]), [])
  t.same(planned(aPodOf([a]), [found(main, failed)]), ['start main'])
  t.same(planned(aPodOf([a]), [found(main, { ...failed, sandboxID: 'lost' })]), ['start a', 'wait main'])
  t.same(planned(aPodOf([a]), [found(main, { state: 'created' })]), ['start a', 'wait main'], 'it was never started')
  t.same(planned(aPodOf([a]), [found(main, { state: 'created', error: 'refused' })]), ['start main'])
})

test('a sidecar runs, and has started, before the next init container', async (t) => {
  const side = sidecar('side')
  const pod = aPodOf([side, a])
  t.same(planned(pod, []), ['start side', 'wait main'])
  const probes = (started: boolean) => ({ probes: new Map([['side', { ready: false, started }]]) })
  t.same(planned(pod, [found(side)], probes(false)), ['wait main'])
  t.same(planned(pod, [found(side)], probes(true)), ['start a', 'wait main'])
  t.same(planned(pod, [found(side)]), ['start a', 'wait main'], 'without a startup probe')
  t.same(planned(pod, [found(side, failed)]), ['start side', 'wait main'])
  t.same(planned(pod, [found(side), found(a, succeeded)]), ['start main'])
  const changed = found({ ...side, image: 'app:0' })
  t.same(planned(pod, [changed]), ['stop side', 'wait main'], 'one that is replaced has not started')
})

test('sidecars run as long as one regular container runs or is to run', async (t) => {
  const side = sidecar('side')
  const pod = aPodOf([side], [main, b], 'Never')
  t.same(planned(pod, [found(side), found(main), found(b, succeeded)]), [])
  t.same(planned(pod, [found(side), found(main, succeeded)]), ['start b'])
})

test('a sidecar is restarted beside running containers', async (t) => {
  const side = sidecar('side')
  t.same(planned(aPodOf([side]), [found(side, failed), found(main)]), ['start side'])
})

test('after the regular containers the sidecars stop, the last one first', async (t) => {
  const [one, two] = [sidecar('one'), sidecar('two')]
  const pod = aPodOf([one, two], [main], 'Never')
  t.same(planned(pod, [found(one), found(two), found(main, succeeded)]), ['stop two'])
  t.same(planned(pod, [found(one), found(two, succeeded), found(main, succeeded)]), ['stop one'])
  t.same(planned(pod, [found(one), found(main, succeeded)]), ['stop one'], 'the other was never made')
  t.same(planned(pod, [found(one, succeeded), found(two, succeeded), found(main, failed)]), [])
  const stopping = { stopping: new Map([['two', 1_000_000]]) }
  t.same(planned(pod, [found(one), found(two), found(main, succeeded)], stopping), [], 'it is being stopped')
  t.same(choices(pod, [sandbox, found(one), found(two), found(main, succeeded)], stopping), [{ tidy: [] }])
  t.same(
    planned(aPodOf([one, a], [main], 'Never'), [found(one), found(a, failed)]),
    ['stop one'],
    'an init container failed',
  )
})

test('containers wait for the postStart hook of the one before', async (t) => {
  const hooked = named('hooked', { lifecycle: { postStart: { exec: { command: ['true'] } } } })
  const pod = aPodOf([], [hooked, b])
  t.same(planned(pod, []), ['start hooked', 'wait b'])
  t.same(planned(pod, [found(hooked)], { postStarts: new Set(['hooked']) }), ['wait b'])
  t.same(planned(pod, [found(hooked)]), ['start b'])
  const during = { postStarts: new Set(['hooked']) }
  t.same(planned(pod, [found(hooked), found(b)], during), [])
  t.same(
    choices(pod, [sandbox, found(hooked), found(b)], during).filter(({ start }) => start !== undefined),
    [],
    'one that runs does not wait',
  )
})
