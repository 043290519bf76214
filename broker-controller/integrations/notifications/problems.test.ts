import { test } from 'tap'
import { rolloutKey } from '../../../api/node/agent-rollout.ts'
import { maintenanceKey } from '../../../api/node/fleet-maintenance.ts'
import type { Node } from '../../../api/node.ts'
import type { Pod } from '../../../api/pod.ts'
import { maintenanceCommands } from '../../controllers/maintenance/maintenance-object.ts'
import { usualMaintenance } from '../../controllers/maintenance/maintenance-rules.ts'
import { rolloutCommands } from '../../controllers/rollouts/rollout-object.ts'
import { usualRules } from '../../controllers/rollouts/rollout-rules.ts'
import { problemsOfMap, problemsOfNode, problemsOfPod } from './problems.ts'

type Condition = NonNullable<NonNullable<Node['status']>['conditions']>[number]

function aNode(conditions: readonly Condition[], metadata: Partial<Node['metadata']> = {}): Node {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1', ...metadata }, spec: {}, status: { conditions } }
}

function aPod(status: Pod['status']): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { containers: [] },
    ...(status && { status }),
  }
}

const ready: Condition = { type: 'Ready', status: 'True' }
const lost: Condition = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }

test('a node that is ready and healthy has no problem', async (t) => {
  t.same(problemsOfNode(aNode([ready, { type: 'UnderVoltage', status: 'False' }])), [])
})

test('a node that is not ready names its link, or its zone', async (t) => {
  t.match(problemsOfNode(aNode([lost])), [
    { kind: 'NodeNotReady', name: 'pi-1', text: 'Node pi-1 is not ready: NodeStatusUnknown' },
  ])
  t.equal(problemsOfNode(aNode([lost]))[0]?.group, undefined)
  t.match(problemsOfNode(aNode([lost], { labels: { 'bramble.dev/link': 'ap-kitchen' } })), [
    { group: 'link ap-kitchen' },
  ])
  t.match(problemsOfNode(aNode([lost], { annotations: { 'bramble.dev/suspected-link': '10.0.0.7' } })), [
    { group: 'link 10.0.0.7' },
  ])
  const zone = { 'topology.kubernetes.io/region': 'home', 'topology.kubernetes.io/zone': 'attic' }
  t.match(problemsOfNode(aNode([lost], { labels: zone })), [{ group: 'zone home/attic' }])
})

test('each condition of the machine is a problem of its own; pressure is not', async (t) => {
  const conditions: Condition[] = [
    ready,
    { type: 'UnderVoltage', status: 'True', message: 'The supply is weak' },
    { type: 'StorageWear', status: 'True', message: 'mmcblk0 is worn' },
    { type: 'MemoryPressure', status: 'True' },
    { type: 'Foreign', status: 'True' },
  ]
  t.same(
    problemsOfNode(aNode(conditions)).map(({ key, text }) => [key, text]),
    [
      ['NodeUnhealthy/pi-1/UnderVoltage', 'Node pi-1: UnderVoltage: The supply is weak'],
      ['NodeUnhealthy/pi-1/StorageWear', 'Node pi-1: StorageWear: mmcblk0 is worn'],
    ],
  )
})

test('what an agent reports is one line of a bounded length', async (t) => {
  const message = `first\nX-Evil: 1\r\n${'x'.repeat(10_000)}`
  const [problem] = problemsOfNode(aNode([ready, { type: 'UnderVoltage', status: 'True', message }]))
  t.match(problem?.text, /^Node pi-1: UnderVoltage: first X-Evil: 1 x+…$/)
  t.ok((problem?.text.length ?? 0) <= 301)
})

test('a pod has a problem when it failed or a container crashes again and again', async (t) => {
  t.same(problemsOfPod(aPod({ phase: 'Running' })), [])
  t.same(problemsOfPod(aPod({ phase: 'Succeeded' })), [])
  t.match(problemsOfPod(aPod({ phase: 'Failed', reason: 'Evicted' })), [
    { kind: 'PodFailed', namespace: 'shop', text: 'Pod shop/web failed: Evicted' },
  ])
  const waiting = (reason: string) =>
    aPod({
      phase: 'Running',
      containerStatuses: [
        { name: 'main', image: 'web', imageID: '', ready: false, restartCount: 7, state: { waiting: { reason } } },
      ],
    })
  t.match(problemsOfPod(waiting('CrashLoopBackOff')), [
    { kind: 'PodCrashLooping', text: 'Pod shop/web: container main keeps crashing, 7 restarts' },
  ])
  t.same(problemsOfPod(waiting('ContainerCreating')), [])
})

test('a maintenance that a failure has paused is a problem, and one that an operator pauses is not', async (t) => {
  const rules = maintenanceCommands.start(usualMaintenance)
  const state = JSON.stringify({ paused: 'The maintenance of pi-1 failed: it did not restart within 1800 s' })
  const map = (data: { readonly [key: string]: string }) => ({
    metadata: maintenanceKey,
    data: { ...rules, ...data },
  })
  t.match(problemsOfMap(map({ state })), [
    { kind: 'MaintenancePaused', text: /pauses: The maintenance of pi-1 failed: it did not restart/ },
  ])
  t.same(problemsOfMap(map({})), [])
  t.same(problemsOfMap(map({ state, ...maintenanceCommands.pause('Paused by an operator') })), [])
  const { resumedAt } = maintenanceCommands.resume('2026-01-01T00:00:00Z')
  t.same(problemsOfMap(map({ state, resumedAt })), [])
  t.same(problemsOfMap({ metadata: maintenanceKey, data: { rules: '{' } }), [])
})

test('a rollout that failures have paused is a problem, and one that an operator pauses is not', async (t) => {
  const target = { version: '1.5.0', sequence: 15, digest: 'a'.repeat(64), floor: 1 }
  const { rollout } = rolloutCommands.start({ target, releases: [target], rules: usualRules })
  const state = JSON.stringify({ target: target.digest, ring: 0, paused: '1 of 1 nodes failed' })
  const map = (data: { readonly [key: string]: string }, name: string = rolloutKey.name) => ({
    metadata: { ...rolloutKey, name },
    data: { rollout, ...data },
  })
  t.match(problemsOfMap(map({ state })), [
    { kind: 'RolloutPaused', namespace: '', text: 'The rollout of agent 1.5.0 pauses: 1 of 1 nodes failed' },
  ])
  t.same(problemsOfMap(map({})), [])
  t.same(problemsOfMap(map({ ...rolloutCommands.pause('Paused by an operator') })), [])
  const { resumedAt } = rolloutCommands.resume('2026-01-01T00:00:00Z')
  t.same(problemsOfMap(map({ state, resumedAt })), [])
  t.same(problemsOfMap(map({ state }, 'another')), [])
  t.same(problemsOfMap({ metadata: rolloutKey, data: { rollout: '{' } }), [])
})
