import { test } from 'tap'
import { conditionEvents, nodeConditions } from './conditions.ts'

const early = '2026-01-02T03:04:05Z'
const late = '2026-01-02T03:14:05Z'
const well = { pressures: [], problems: [] }

test("a healthy node has the kubelet's conditions, Ready last", async (t) => {
  const shown = nodeConditions([], well, early).map(({ type, status, reason, message }) => [
    type,
    status,
    reason,
    message,
  ])
  t.same(shown, [
    ['MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
    ['DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
    ['PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
    ['Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'],
  ])
})

test('each pressure has its condition', async (t) => {
  const conditions = nodeConditions([], { ...well, pressures: ['MemoryPressure', 'PIDPressure'] }, early)
  t.same(
    conditions.map(({ status, reason }) => [status, reason]),
    [
      ['True', 'KubeletHasInsufficientMemory'],
      ['False', 'KubeletHasNoDiskPressure'],
      ['True', 'KubeletHasInsufficientPID'],
      ['True', 'KubeletReady'],
    ],
    'and does not make the node unready',
  )
})

test('one problem stands alone, several in brackets', async (t) => {
  const one = nodeConditions([], { ...well, problems: ['container runtime is down'] }, early).at(-1)
  t.same([one?.status, one?.reason, one?.message], ['False', 'KubeletNotReady', 'container runtime is down'])
  const two = nodeConditions([], { ...well, problems: ['container runtime is down', 'node is shutting down'] }, early)
  t.equal(two.at(-1)?.message, '[container runtime is down, node is shutting down]')
})

test('the moment of transition moves only when the status does', async (t) => {
  const first = nodeConditions([], well, early)
  const second = nodeConditions(first, { ...well, pressures: ['DiskPressure'] }, late)
  const moments = new Map(second.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]))
  t.equal(moments.get('DiskPressure'), late)
  t.equal(moments.get('MemoryPressure'), early)
  t.equal(moments.get('Ready'), early)
  t.ok(second.every(({ lastHeartbeatTime }) => lastHeartbeatTime === late))
})

test('every change is an event, and nothing else is', async (t) => {
  const first = nodeConditions([], well, early)
  t.same(conditionEvents([], first), [
    'NodeHasSufficientMemory',
    'NodeHasNoDiskPressure',
    'NodeHasSufficientPID',
    'NodeReady',
  ])
  t.same(conditionEvents(first, nodeConditions(first, well, late)), [])
  const worse = nodeConditions(first, { pressures: ['DiskPressure'], problems: ['container runtime is down'] }, late)
  t.same(conditionEvents(first, worse), ['NodeHasDiskPressure', 'NodeNotReady'])
})

test('conditions of the machine come before Ready and are not Events of the node', async (t) => {
  const hot = { type: 'Overheated', status: 'True', reason: 'CPUHot', message: '91 °C' } as const
  const shown = nodeConditions([], { ...well, machine: [hot] }, early)
  t.same(shown[3], { ...hot, lastHeartbeatTime: early, lastTransitionTime: early })
  t.same(
    shown.map(({ type }) => type),
    ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Overheated', 'Ready'],
  )
  t.same(conditionEvents(nodeConditions([], well, early), shown), [])
  t.same(conditionEvents([], [{ type: 'MemoryPressure', status: 'Unknown' }]), [], 'an unknown state is not an Event')
})
