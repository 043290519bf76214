import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import { sortContainers } from '../record/pod-containers.ts'
import { newRecord, type PodRecord } from '../record/pod-record.ts'
import { containerHash } from '../record/spec-hash.ts'
import { chooseEphemeral } from './ephemeral-containers.ts'
import type { PodFacts } from './pod-steps.ts'

const image = 'busybox:1.36'
const sandbox = aContainer({ identity: { containerName: '' } })
const found = (containerName: string, over: Partial<RuntimeContainer> = {}) =>
  aContainer({ id: `${containerName}-id`, identity: { containerName }, ...over })
const exited = { state: 'exited', exitCode: 1 } as const

/** The choice for the container `look`, and the steps that start it. */
function chosen(
  containers: readonly RuntimeContainer[],
  {
    target,
    ...more
  }: Partial<Pick<PodFacts, 'images'>> & { readonly record?: PodRecord; readonly target?: string } = {},
) {
  const look = { name: 'look', image, ...(target !== undefined && { targetContainerName: target }) }
  const pod = aPod({ name: 'web', spec: { ephemeralContainers: [look] } })
  const images = new Map([['look', { present: true, pull: { state: 'none' } } as const]])
  const facts: PodFacts = { containers, images, record: newRecord, nowMs: 1_000_000, ...more }
  const [choice] = chooseEphemeral(pod, sortContainers(containers), facts)
  return { ...choice, steps: choice?.start?.(sandbox) }
}

test('a new ephemeral container starts', async (t) => {
  t.match(chosen([found('main')]).steps, [{ step: 'startContainer', container: { name: 'look' }, attempt: 0, sandbox }])
  t.notOk('processesOf' in (chosen([found('main')]).steps?.[0] ?? {}))
  t.same(chosen([], { images: new Map() }), {
    ...{ tidy: [], waiting: ['look', { reason: 'ContainerCreating', message: '' }] },
    ...{ first: { step: 'lookForImage', image }, start: chosen([], { images: new Map() }).start, steps: [] },
  })
})

test('it is never started again, whatever the policy of the pod, also when it was removed', async (t) => {
  for (const state of ['exited', 'dead'] as const)
    t.notOk(chosen([found('main'), found('look', { ...exited, state })]).steps, state)
  const specHash = containerHash({ name: 'look', image })
  const running = aContainer({ identity: { containerName: 'look', specHash } })
  t.notOk(chosen([sandbox, running]).steps)
  t.notOk(chosen([sandbox, running]).stop)
  const record = { ...newRecord, restartCounts: new Map([['look', 0]]) }
  t.same(chosen([found('main')], { record }), { steps: undefined })
})

test('it sees the processes of its target, and waits while the target does not run', async (t) => {
  t.match(chosen([found('main')], { target: 'main' }).steps, [{ step: 'startContainer', processesOf: 'main-id' }])
  const older = found('main', { ...exited, id: 'older' })
  t.match(chosen([found('main'), older], { target: 'main' }).steps, [{ processesOf: 'main-id' }])
  for (const containers of [[], [found('main', exited)], [found('other')]]) {
    const choice = chosen(containers, { target: 'main' })
    t.same(choice.steps, [])
    const message = 'unable to find target container "main": it does not run'
    t.same(choice.waiting, ['look', { reason: 'CreateContainerConfigError', message }])
  }
  t.notOk(chosen([found('look', exited)], { target: 'main' }).waiting, 'one that ran waits for nothing')
})

test('each of a pod has its own choice, and a pod without any has none', async (t) => {
  const facts: PodFacts = { containers: [], images: new Map(), record: newRecord, nowMs: 0 }
  const none = sortContainers([])
  t.same(chooseEphemeral(aPod(), none, facts), [])
  const ephemeralContainers = ['a', 'b'].map((name) => ({ name, image }))
  t.same(
    chooseEphemeral(aPod({ spec: { ephemeralContainers } }), none, facts).map(({ waiting }) => waiting?.[0]),
    ['a', 'b'],
  )
})
