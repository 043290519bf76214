import { test } from 'tap'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import { type DeadContainerFacts, type DeadContainerPolicy, deadContainers, type PodNeed } from './dead-containers.ts'

const asTheKubelet: DeadContainerPolicy = { minAgeMs: 0, maxPerPodContainer: 1, maxContainers: -1 }
const noon = Date.parse('2026-01-01T12:00:00Z')

/** `pod/name#attempt`, created this many minutes ago; `pod/#1` is a sandbox. */
function dead(text: string, minutesAgo: number, over: Partial<RuntimeContainer> = {}): RuntimeContainer {
  const [, podUID = '', containerName = '', attempt = ''] = /(.+)\/(.*)#(\d+)/.exec(text) ?? []
  return aContainer({
    id: text,
    identity: { podName: podUID, podUID, containerName, attempt: Number(attempt) },
    sandboxID: containerName === '' ? undefined : `${podUID}/#0`,
    state: 'exited',
    createdAt: new Date(noon - minutesAgo * 60_000).toISOString(),
    startedAt: undefined,
    ...over,
  })
}

function removed(
  containers: readonly RuntimeContainer[],
  policy: Partial<DeadContainerPolicy> = {},
  { needs = {}, ...over }: { needs?: { [uid: string]: PodNeed } } & Partial<DeadContainerFacts> = {},
): readonly string[] {
  const needOf = (uid: string) => needs[uid] ?? 'needed'
  const facts = { containers, needOf, nowWallMs: noon, short: false, ...over }
  return deadContainers({ ...asTheKubelet, ...policy }, facts).map(({ id }) => id)
}

const running = { state: 'running' } as const

test('of each container of a pod the last dead one is kept, or as many as are wanted', async (t) => {
  const found = [
    dead('a/main#3', 1, running),
    dead('a/main#2', 2),
    dead('a/main#1', 3),
    dead('a/main#0', 4),
    dead('a/side#0', 4),
  ]
  t.same(removed(found), ['a/main#0', 'a/main#1'])
  t.same(removed(found, { maxPerPodContainer: 2 }), ['a/main#0'])
  t.same(removed(found, { maxPerPodContainer: -1 }), [])
  t.same(removed(found, { maxPerPodContainer: 0 }), ['a/main#0', 'a/main#1'], 'the newest has the exit code')
})

test('what is younger than the least age does not count at all', async (t) => {
  const found = [dead('a/main#3', 1), dead('a/main#2', 5), dead('a/main#1', 11), dead('a/main#0', 12)]
  t.same(removed(found, { minAgeMs: 600_000 }), ['a/main#0'])
  t.same(removed([dead('a/main#1', -10), dead('a/main#0', -20)]), ['a/main#0'], 'without one, dates do not matter')
})

test('containers of a pod that is gone all go, those that run never', async (t) => {
  const found = [dead('a/main#1', 1), dead('a/main#0', 2), dead('a/side#0', 2, running)]
  t.same(removed(found, {}, { needs: { a: 'gone' } }), ['a/main#0', 'a/main#1'])
})

test('a pod that is over keeps what it left, until the disk is short', async (t) => {
  const found = [dead('a/main#0', 2), dead('a/#0', 3), dead('b/main#0', 1), dead('b/#0', 3)]
  const needs = { a: 'over' } as const
  t.same(removed(found, {}, { needs }), [])
  t.same(removed(found, {}, { needs, short: true }), ['a/main#0', 'a/#0'])
})

test('above the limit of the machine each container gives what is above its share, then the oldest go', async (t) => {
  const many = [
    ...['a/main#3', 'a/main#2', 'a/main#1', 'a/main#0'].map((text, index) => dead(text, index + 1)),
    ...['b/main#1', 'b/main#0'].map((text, index) => dead(text, index + 10)),
  ]
  const policy = { maxPerPodContainer: -1, maxContainers: 4 }
  t.same(removed(many, policy), ['a/main#0', 'a/main#1'])
  t.same(removed(many, { ...policy, maxContainers: 3 }), ['b/main#0', 'a/main#0', 'a/main#1', 'a/main#2'])
  t.same(removed(many, { ...policy, maxContainers: 6 }), [])
  t.same(removed(many, { ...policy, maxContainers: 0 }), ['b/main#0', 'a/main#0', 'a/main#1', 'a/main#2'])
})

test('older sandboxes go once nothing is on them; the newest stays while its pod is wanted', async (t) => {
  const found = [dead('a/#2', 1), dead('a/#1', 2), dead('a/#0', 3), dead('a/main#0', 3)]
  t.same(removed(found), ['a/#1'], 'a dead container is on the first')
  t.same(removed(found, {}, { needs: { a: 'gone' } }), ['a/main#0', 'a/#0', 'a/#1', 'a/#2'])
  t.same(removed([dead('a/#1', 1, running), dead('a/#0', 2)], {}, { needs: { a: 'gone' } }), ['a/#0'])
})

test('what the limit of a container removes does not count for the limit of the machine', async (t) => {
  const found = [
    ...['a/main#2', 'a/main#1', 'a/main#0'].map((text, index) => dead(text, index + 1)),
    ...['b/main#1', 'b/main#0'].map((text, index) => dead(text, index + 10)),
  ]
  const limits = { maxPerPodContainer: 2, maxContainers: 4 }
  t.same(removed(found, limits), ['a/main#0'])
  t.same(removed(found, { ...limits, maxContainers: 3 }), ['a/main#0', 'b/main#0', 'a/main#1'])
})

test('containers that are paused or restarting are at work, and so is the sandbox under them', async (t) => {
  const at = (state: 'paused' | 'restarting') => [dead('a/main#0', 5, { state }), dead('a/#0', 5)]
  for (const state of ['paused', 'restarting'] as const) {
    t.same(removed(at(state), {}, { needs: { a: 'gone' } }), [], state)
  }
})

test('a container of exactly the least age counts', async (t) => {
  const found = [dead('a/main#2', 10), dead('a/main#1', 10), dead('a/main#0', 10)]
  t.equal(removed(found, { minAgeMs: 600_000 }).length, 2)
  t.same(removed(found, { minAgeMs: 600_001 }), [])
})

test('attempts order the containers of one pod, whatever their dates; dates those of different pods', async (t) => {
  const backwards = [dead('a/main#0', 1), dead('a/main#1', 2), dead('a/main#2', 3)]
  t.same(removed(backwards), ['a/main#1', 'a/main#0'], 'the clock was set back: the last attempt stays')
  const between = [dead('a/main#1', 10), dead('b/main#0', 20), dead('a/main#2', 30)]
  t.same(removed(between), ['a/main#1'], 'also with a date of another pod between theirs')
  const pods = [dead('a/main#7', 5), dead('a/main#6', 6), dead('b/main#1', 1), dead('b/main#0', 9)]
  t.same(removed(pods), ['b/main#0', 'a/main#6'], 'the oldest first')
})

test('a sandbox that is newer by its attempt is the newest one', async (t) => {
  const idle = { sandboxID: undefined } as const
  const found = [dead('a/#1', 5, idle), dead('a/#0', 1, idle), dead('b/#0', 9, idle)]
  t.same(removed(found), ['a/#0'])
  t.same(removed([...found].reverse()), ['a/#0'])
  const apart = [dead('a/#0', 9, idle), dead('a/main#3', 1, { sandboxID: 'none' })]
  t.same(removed(apart), [], 'the attempts of containers do not count')
})

test('containers that are removed anyway do not count for the limit of the machine', async (t) => {
  const gone = [dead('x/main#1', 5), dead('x/main#0', 6)]
  const found = [...gone, dead('a/main#1', 1), dead('a/main#0', 2)]
  const needs = { x: 'gone' } as const
  t.same(removed(found, { maxPerPodContainer: -1, maxContainers: 2 }, { needs }), ['x/main#0', 'x/main#1'])
  const long = [
    ...['a/main#3', 'a/main#2', 'a/main#1', 'a/main#0'].map((text, i) => dead(text, i + 1)),
    dead('b/main#0', 9),
  ]
  t.same(removed(long, { maxPerPodContainer: 3, maxContainers: 4 }), ['a/main#0'])
})

test('with few containers above the limit of the machine no newest one goes', async (t) => {
  const found = [dead('a/main#1', 1), dead('a/main#0', 4), dead('b/main#1', 2), dead('b/main#0', 3)]
  const policy = { maxPerPodContainer: -1, maxContainers: 3 }
  t.same(removed(found, policy), ['a/main#0', 'b/main#0'], 'a share of one each')
  t.same(removed(found, { ...policy, maxContainers: 4 }), [])
  t.same(removed(found, { ...policy, maxContainers: 0 }), ['a/main#0', 'b/main#0'])
  t.same(removed([dead('a/main#0', 1), dead('b/main#0', 2)], { ...policy, maxContainers: 1 }), [])
})
