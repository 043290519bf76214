import { test } from 'tap'
import { savedTree } from '../../testing/saved-trees.ts'
import { describeMachine, readInventory } from './host-inventory.ts'

const card = { bsize: 4096, blocks: 7_500_000, bavail: 1, files: 1, ffree: 1 }
const inventoryOf = (tree: string) =>
  readInventory({ root: savedTree(tree), dataDirectory: '/data', statfs: async () => card })

test('a Pi is read whole from its files', async (t) => {
  const { machine, system } = await inventoryOf('pi-4-cgroup-v2')
  t.same(machine, {
    cpus: 4,
    memoryBytes: 3884392 * 1024,
    ephemeralStorageBytes: 4096 * 7_500_000,
    hugePageBytes: { 'hugepages-2Mi': 8 * 2 ** 20 },
  })
  t.match(system, {
    machineID: 'aaaaaaaabbbb4cccadddeeeeeeeeeeee',
    systemUUID: 'aaaaaaaabbbb4cccadddeeeeeeeeeeee',
    bootID: '99999999-8888-4777-8666-555555555555',
    kernelVersion: '6.12.34+rpt-rpi-v8',
    osImage: 'Debian GNU/Linux 12 (bookworm)',
    operatingSystem: 'linux',
  })
})

test('a PC has a UUID of its own', async (t) => {
  const { machine, system } = await inventoryOf('debian-12-cgroup-v1')
  t.equal(machine.cpus, 2)
  t.equal(system.systemUUID, '4C4C4544-0042-4D10-8051-B7C04F565931')
  t.same(machine.hugePageBytes, { 'hugepages-1Gi': 0, 'hugepages-2Mi': 0 })
})

test('this very machine can be read', async (t) => {
  const { machine, system } = await readInventory({ root: '/', dataDirectory: '/' })
  t.ok(machine.cpus >= 1 && machine.memoryBytes > 2 ** 26 && machine.ephemeralStorageBytes > 0)
  t.match(system.bootID, /^[0-9a-f-]{36}$/)
  t.ok(system.kernelVersion)
})

test('a machine is described, or has no description', async (t) => {
  const { board, processor } = await describeMachine()
  for (const text of [board, processor]) t.not(text, '')
  t.comment(`${board}, ${processor}`)
})
