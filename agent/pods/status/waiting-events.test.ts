import { test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import type { PodPlan } from '../plan/pod-steps.ts'
import { waitingEvents } from './waiting-events.ts'

const pod: Pod = {
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'default', uid: 'uid-1' } },
  spec: {
    initContainers: [{ name: 'init', image: 'init:1' }],
    containers: [
      { name: 'web', image: 'nginx:1' },
      { name: 'log', image: 'log:1' },
    ],
  },
}
const plan = (waiting: { readonly [container: string]: string }): PodPlan => ({
  steps: [],
  waiting: new Map(Object.entries(waiting).map(([name, reason]) => [name, { reason, message: `because of ${name}` }])),
  againInMs: undefined,
})
const nothing = new Map<string, string>()
const found = (waiting: { readonly [container: string]: string }, before: ReadonlyMap<string, string> = nothing) => {
  const { events, recorded } = waitingEvents(pod, plan(waiting), before)
  return { events: events.map(({ containerName, reason }) => `${containerName} ${reason}`), recorded: [...recorded] }
}

test('a container that begins to wait has the events of its reason, once', async (t) => {
  const first = found({ web: 'ErrImagePull' })
  t.same(first.events, ['web Failed', 'web Failed'])
  t.same(first.recorded, [['web', 'ErrImagePull']])
  t.same(found({ web: 'ErrImagePull' }, new Map([['web', 'ErrImagePull']])).events, [], 'it waits for the same')
  t.same(found({ web: 'ImagePullBackOff' }, new Map([['web', 'ErrImagePull']])), {
    events: ['web BackOff', 'web Failed'],
    recorded: [['web', 'ImagePullBackOff']],
  })
})

test('a reason without an event does not make the one before it new again', async (t) => {
  const before = new Map([['web', 'ErrImagePull']])
  const passing = found({ web: 'ContainerCreating' }, before)
  t.same(passing, { events: [], recorded: [['web', 'ErrImagePull']] })
  t.same(found({ web: 'ErrImagePull' }, new Map(passing.recorded.map(([name, reason]) => [name, reason]))).events, [])
})

test('each container has its own, also one that starts the pod', async (t) => {
  const both = found({ init: 'InvalidImageName', log: 'CrashLoopBackOff' }, new Map([['web', 'ErrImagePull']]))
  t.same(both.events, ['init InspectFailed', 'init Failed', 'log BackOff'])
  t.same(both.recorded, [
    ['web', 'ErrImagePull'],
    ['init', 'InvalidImageName'],
    ['log', 'CrashLoopBackOff'],
  ])
  t.same(found({}).events, [], 'nothing waits')
  t.same(found({ gone: 'ErrImagePull' }), { events: [], recorded: [] }, 'a container that the pod does not have')
  t.equal(nothing.size, 0, 'what was recorded before is as it was')
})
