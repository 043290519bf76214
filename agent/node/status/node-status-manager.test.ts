import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { agentBoard } from '../../assembly/board.ts'
import { engineInfo } from '../../testing/builders.ts'
import { fakeControlPlane } from '../../testing/fake-control-plane.ts'
import { nodeEvents } from './node-event.ts'
import { nodeStatusManager } from './node-status-manager.ts'
import { unknownRuntime } from './runtime-health.ts'

function node(t: Test, { rebooted = false, isChecked = true, checked = true } = {}) {
  const [clock, log, controlPlane] = [fakeClock(), quietLog(t), fakeControlPlane()]
  const world = {
    isChecked,
    problems: [] as string[],
    ip: '192.168.1.7' as string | undefined,
  }
  const board = agentBoard()
  board.pressures.set([])
  if (checked) board.machineHealth.set({ conditions: [], problems: [] })
  const manager = nodeStatusManager(
    {
      machine: { cpus: 4, memoryBytes: 2 ** 30, ephemeralStorageBytes: 2 ** 33, hugePageBytes: {} },
      system: {
        machineID: 'm',
        systemUUID: 'u',
        bootID: 'b2',
        kernelVersion: 'k',
        osImage: 'Debian',
        operatingSystem: 'linux',
        architecture: 'arm64',
      },
      addresses: async () => {
        if (world.ip === undefined) throw new Error('No address')
        return [{ type: 'InternalIP', address: world.ip }]
      },
      reads: {
        ...board,
        runtime: {
          isChecked: () => world.isChecked,
          problems: () => world.problems,
          info: () => engineInfo,
          images: () => [],
          onChange: board.runtime.onChange,
        },
      },
      writes: board,
      event: nodeEvents({ controlPlane, clock }, 'pi-7'),
      controlPlane,
      clock,
      random: () => 0,
      log,
    },
    {
      nodeName: 'pi-7',
      agentVersion: 'v1',
      maxPods: 110,
      podsPerCore: 0,
      reserved: [{ memory: 2 ** 20 * 100 }],
      updateMs: 10_000,
      reportMs: 300_000,
      rebooted,
    },
  )
  const stopping = new AbortController()
  const done = manager.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await done
  })
  const ready = () => controlPlane.statuses.at(-1)?.conditions?.find(({ type }) => type === 'Ready')
  return { world, board, manager, clock, log, controlPlane, ready }
}

const reasons = ({ controlPlane }: ReturnType<typeof node>) => controlPlane.events.map(({ reason }) => reason)

test('a node reports its start and its status once, then every five minutes while nothing changes', async (t) => {
  const pi = node(t)
  await pi.clock.settle()
  t.equal(pi.controlPlane.statuses.length, 1)
  t.match(pi.controlPlane.statuses[0], { allocatable: { memory: `${(1024 - 100) * 1024}Ki` } })
  t.same(reasons(pi), [
    'Starting',
    'NodeHasSufficientMemory',
    'NodeHasNoDiskPressure',
    'NodeHasSufficientPID',
    'NodeReady',
  ])
  await pi.clock.advance(299_000)
  t.equal(pi.controlPlane.statuses.length, 1)
  await pi.clock.advance(2_000)
  t.equal(pi.controlPlane.statuses.length, 2)
  t.equal(pi.controlPlane.events.length, 5)
})

test('a change on the board is reported at once, any other at the next update', async (t) => {
  const pi = node(t)
  await pi.clock.settle()
  pi.world.ip = '192.168.1.9'
  await pi.clock.advance(9_999)
  t.equal(pi.controlPlane.statuses.length, 1)
  await pi.clock.advance(1)
  t.equal(pi.controlPlane.statuses.length, 2)
  pi.board.pressures.set(['MemoryPressure'])
  await pi.clock.settle()
  t.equal(pi.controlPlane.statuses.length, 3)
  pi.world.problems = ['container runtime is down']
  pi.board.runtime.set({ ...unknownRuntime, revision: 1 })
  await pi.clock.settle()
  t.match(pi.ready(), { status: 'False', reason: 'KubeletNotReady', message: 'container runtime is down' })
  t.same(reasons(pi).slice(5), ['NodeHasInsufficientMemory', 'NodeNotReady'])
  t.match(pi.controlPlane.events.at(-1), {
    message: 'Node pi-7 status is now: NodeNotReady',
    involvedObject: { kind: 'Node', uid: 'pi-7' },
    metadata: { namespace: 'default' },
  })
})

test('a status that has not changed is confirmed where that is understood, and a changed one is reported whole', async (t) => {
  const pi = node(t)
  await pi.clock.settle()
  pi.controlPlane.canConfirm = true
  await pi.clock.advance(21 * 60_000)
  t.equal(pi.controlPlane.statuses.length, 1)
  t.equal(pi.controlPlane.confirmed.count, 4, 'every five minutes')
  pi.world.ip = '192.168.1.9'
  await pi.clock.advance(11_000)
  t.equal(pi.controlPlane.statuses.length, 2)
  t.equal(pi.controlPlane.confirmed.count, 4)
})

test('no status is reported before the first checks of the machine', async (t) => {
  const pi = node(t, { isChecked: false })
  await pi.clock.advance(5_000)
  t.equal(pi.controlPlane.statuses.length, 0)
  pi.world.isChecked = true
  await pi.clock.advance(1_000)
  t.equal(pi.controlPlane.statuses.length, 1)
})

test('after a registration the same status is reported again', async (t) => {
  const pi = node(t)
  await pi.clock.settle()
  pi.manager.report()
  await pi.clock.settle()
  t.equal(pi.controlPlane.statuses.length, 2)
})

test('another address is reported when a connection stands, not at the next update', async (t) => {
  const pi = node(t)
  await pi.clock.settle()
  pi.world.ip = '192.168.1.9'
  pi.manager.update()
  await pi.clock.settle()
  t.match(pi.controlPlane.statuses.at(-1)?.addresses, [{ address: '192.168.1.9' }])
  pi.manager.update()
  await pi.clock.settle()
  t.equal(pi.controlPlane.statuses.length, 2, 'the same status is not')
})

test('without a network the last address stays, and one warning is logged', async (t) => {
  const pi = node(t)
  await pi.clock.settle()
  pi.world.ip = undefined
  await pi.clock.advance(60_000)
  t.same(pi.board.nodeStatus.get()?.addresses, [{ type: 'InternalIP', address: '192.168.1.7' }])
  t.same(pi.log.messages('warn'), ['The address of this node cannot be determined'])
  pi.world.ip = '192.168.1.8'
  await pi.clock.advance(10_000)
  t.same(pi.controlPlane.statuses.at(-1)?.addresses, [{ type: 'InternalIP', address: '192.168.1.8' }])
})

test('a reboot is an event', async (t) => {
  const pi = node(t, { rebooted: true })
  await pi.clock.settle()
  t.match(pi.controlPlane.events[1], {
    type: 'Warning',
    reason: 'Rebooted',
    message: 'Node pi-7 has been rebooted, boot id: b2',
  })
})

test('a shutdown makes the node unready once its leave was received, together with its condition', async (t) => {
  const pi = node(t)
  await pi.clock.settle()
  const departing = { action: 'reboot', untilMs: 30_000 }
  pi.board.goingDown.set(departing)
  await pi.clock.settle()
  t.equal(pi.controlPlane.statuses.length, 1)
  pi.board.departureReported.set(departing)
  await pi.clock.settle()
  t.match(pi.ready(), { status: 'False' })
  const condition = { type: 'GracefulShutdownReady', status: 'True', reason: 'DelayLockHeld', message: '5 s' } as const
  pi.board.shutdownConditions.set([condition])
  await pi.clock.settle()
  t.match(
    pi.controlPlane.statuses.at(-1)?.conditions?.find(({ type }) => type === condition.type),
    { status: 'True', reason: 'DelayLockHeld' },
  )
})

test('the status waits for the pressures and for the health of the machine', async (t) => {
  const pi = node(t, { checked: false })
  await pi.clock.advance(5_000)
  t.equal(pi.controlPlane.statuses.length, 0)
  pi.board.machineHealth.set({ conditions: [], problems: ['The disk is broken'] })
  await pi.clock.settle()
  t.match(pi.ready(), { status: 'False', message: 'The disk is broken' })
})

test('a volume that is in use is reported at once, and nothing of volumes before they are read', async (t) => {
  const pi = node(t)
  await pi.clock.settle()
  t.notOk(Object.hasOwn(pi.controlPlane.statuses.at(-1) ?? {}, 'volumesInUse'))
  for (const volumes of [['kubernetes.io/csi/d^h'], []]) {
    pi.board.volumesInUse.set(volumes)
    await pi.clock.settle()
    t.same(pi.controlPlane.statuses.at(-1)?.volumesInUse, volumes)
  }
})
