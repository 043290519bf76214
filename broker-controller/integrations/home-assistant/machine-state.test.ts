import { test } from 'tap'
import { hardwareIdentityAnnotation } from '../../../api/node/hardware-identity.ts'
import type { Node, NodeCondition } from '../../../api/node.ts'
import { aNode } from '../../../api/testing/builders.ts'
import type { MachineStats } from '../../../api/topics.ts'
import type { ReceivedUsage } from '../../usage/usage-board.ts'
import { fleetState, machineState, modelOf, releaseOf } from './machine-state.ts'

const ready: NodeCondition = { type: 'Ready', status: 'True' }
const lost: NodeCondition = {
  ...{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' },
  message: 'Kubelet stopped posting node status.',
}

function nodeWith(conditions: readonly NodeCondition[], more: Partial<NonNullable<Node['status']>> = {}): Node {
  const node = aNode({ name: 'pi-1' })
  return { ...node, status: { capacity: { cpu: '4', memory: '1000' }, ...more, conditions } }
}

function used(machine?: MachineStats): ReceivedUsage {
  return {
    ...{ receivedMs: 0, receivedWallMs: 0, windowSeconds: 10, startTime: '2026-01-01T00:00:00Z' },
    node: { cpu: 4e8, memory: 250 },
    pods: new Map(),
    ...(machine && { machine }),
  }
}

const stateOf = (node: Node, usage?: ReceivedUsage) =>
  machineState({ node, usage, pools: [], podsRunning: 3, latestVersion: '0.2.0' })

test('a ready machine shows what it measures', async (t) => {
  const info = { kubeletVersion: 'v1.32.4-bramble.0.1.0' } as NonNullable<Node['status']>['nodeInfo']
  const conditions: readonly NodeCondition[] = [
    { type: 'UnderVoltage', status: 'False', reason: 'SupplyWasTooWeak' },
    { type: 'ThermalThrottling', status: 'True' },
    { type: 'StorageWear', status: 'False', message: 'mmcblk0 has used up to 30 % of its life' },
    ready,
  ]
  const machine = { celsius: 47.6, load: 0.33, diskUsedBytes: 1, diskCapacityBytes: 4 }
  t.same(stateOf(nodeWith(conditions, { nodeInfo: info }), used(machine)), {
    ...{ not_ready: false, connected: true, reason: 'Ready', cordoned: false, pods: 3 },
    ...{ version: '0.1.0', agent_update: '0.1.0', latest_version: '0.2.0', update_percent: null },
    ...{ under_voltage: false, under_voltage_since_boot: true, throttled: true, card_wear: 30 },
    ...{ cpu: 10, memory: 25, temperature: 48, disk: 25, load: 0.3, last_boot: 1_767_225_600 },
  })
})

test('the update of the agent is to the release of the rollout, with its progress', async (t) => {
  const nodeInfo = { kubeletVersion: 'v1.32.4-bramble.1.5.0' } as NonNullable<Node['status']>['nodeInfo']
  const of = (release: object | undefined, sequence = 14, target = 15) => {
    const annotations = { 'bramble.dev/agent-update': JSON.stringify({ version: '1.4.0', sequence, release }) }
    const node = aNode({ name: 'pi-1', annotations })
    const { agent_update, latest_version, update_percent } = machineState({
      node: { ...node, status: { ...node.status, nodeInfo, conditions: [ready] } as NonNullable<Node['status']> },
      ...{
        usage: undefined,
        pools: undefined,
        podsRunning: 0,
        latestVersion: '1.3.0',
        target: { version: '1.5.0', sequence: target },
      },
    })
    return [agent_update, latest_version, update_percent]
  }
  const newer = { version: '1.5.0', sequence: 15 }
  t.same(of(undefined), ['1.4.0', '1.5.0', null])
  t.same(of({ ...newer, outcome: 'waiting' }), ['1.4.0', '1.5.0', null])
  t.same(of({ ...newer, outcome: 'waiting', percent: 40 }), ['1.4.0', '1.5.0', 40])
  t.same(of({ ...newer, outcome: 'trial' }), ['1.4.0', '1.5.0', 100], 'it is not installed before it is committed')
  t.same(of({ ...newer, outcome: 'rolledBack' }), ['1.4.0', '1.5.0', null])
  t.same(of(undefined, 15), ['1.4.0', '1.3.0', null], 'without a newer release that of the controller, which is older')
})

test('a machine has no value for a sensor that it does not have', async (t) => {
  const unmeasured = ['UnderVoltage', 'ThermalThrottling', 'StorageWear'].map(
    (type): NodeCondition => ({ type, status: 'Unknown', message: 'mmcblk0 has used up to 30 % of its life' }),
  )
  const state = stateOf(nodeWith([...unmeasured, ready]), used({ load: 1 }))
  for (const key of ['temperature', 'disk', 'under_voltage', 'throttled', 'card_wear', 'version', 'agent_update']) {
    t.notOk(key in state, key)
  }
  t.equal(state.load, 1)
})

test('a machine that is silent has unknown values, and a reason', async (t) => {
  const state = stateOf(nodeWith([lost]))
  t.match(state, { not_ready: true, connected: false, reason: /^The node stopped reporting/ })
  for (const key of ['temperature', 'memory', 'cpu', 'disk', 'load', 'last_boot', 'throttled', 'card_wear'] as const) {
    t.equal(state[key], null, key)
  }
})

test('a report that others asked for shows nothing about the sensors of the machine', async (t) => {
  const state = stateOf(nodeWith([ready]), used())
  t.match(state, { memory: 25, temperature: null, disk: null, load: null })
})

test('a machine that is connected may be not ready, with the reason that it gives', async (t) => {
  const state = stateOf(nodeWith([{ type: 'Ready', status: 'False', message: `${'docker is down\n'.repeat(50)}` }]))
  t.match(state, { not_ready: true, connected: true, reason: /^Docker is down docker is down/ })
  t.ok(String(state.reason).length <= 250, 'Home Assistant keeps 255 characters')
})

test('the release of an agent is what is behind the version of Kubernetes', async (t) => {
  t.equal(releaseOf('v1.32.4-bramble.0.1.0-rc.1'), '0.1.0-rc.1')
  t.equal(releaseOf('v1.30.0'), 'v1.30.0')
  t.equal(releaseOf(`v1-bramble.${'9'.repeat(100)}`).length, 64)
})

test('the model is that of the hardware, whatever the node wrote there', async (t) => {
  const model = (annotations: { readonly [key: string]: string }) =>
    modelOf({ ...aNode({ name: 'pi-1' }), metadata: { name: 'pi-1', annotations } })
  t.equal(model({ [hardwareIdentityAnnotation]: '{"model":"Raspberry Pi 4\\n"}' }), 'Raspberry Pi 4')
  t.equal(model({ [hardwareIdentityAnnotation]: '{', 'bramble.dev/board': 'Pine' }), 'Pine')
  t.equal(model({ [hardwareIdentityAnnotation]: '{"model":5}' }), undefined)
  t.equal(model({ [hardwareIdentityAnnotation]: 'null' }), undefined)
  t.equal(model({}), undefined)
})

test('a machine shows how full the fullest of its pools is', async (t) => {
  const pool = (id: string, availableBytes: number) => ({ id, capacityBytes: 1000, availableBytes })
  const poolOf = (pools: Parameters<typeof machineState>[0]['pools'], node = nodeWith([ready])) =>
    machineState({ node, usage: undefined, pools, podsRunning: 0, latestVersion: '1' }).pool
  t.equal(poolOf([pool('a', 900), pool('b', 150)]), 85)
  t.equal(poolOf([]), undefined, 'it has none')
  t.equal(poolOf(undefined), null, 'it has not reported yet')
})

test('the fleet shows its backups, once one was made or has failed', async (t) => {
  const counts = { ready: 2, total: 2, podsRunning: 5, podsWaiting: 1, alerts: 4 }
  const lastMs = Date.parse('2026-11-29T03:00:00Z')
  t.match(fleetState({ ...counts, backups: { failed: 2, lastMs } }, '1'), {
    ...{ backups_failed: 2, backups_failing: true, last_backup: lastMs / 1000 },
  })
  const failed = fleetState({ ...counts, backups: { failed: 0, lastMs: undefined } }, '1')
  t.match(failed, { backups_failed: 0, backups_failing: false })
  t.notOk('last_backup' in failed)
})

test('the fleet has a problem while a machine is not ready', async (t) => {
  const counts = { ready: 2, total: 3, podsRunning: 5, podsWaiting: 1, alerts: 4, backups: undefined }
  t.same(fleetState(counts, '0.1.0'), {
    ...{ machines_ready: 2, machines_total: 3, machines_not_ready: true },
    ...{ pods_running: 5, pods_waiting: 1, alerts: 4, version: '0.1.0' },
  })
  t.equal(fleetState({ ...counts, ready: 3 }, '0.1.0')['machines_not_ready'], false)
})
