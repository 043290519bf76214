import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { savedTree } from '../../testing/saved-trees.ts'
import { describeMachine, machineDescription, readInventory } from './host-inventory.ts'

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

test('a kernel without a list of online processors counts those it describes, and 1 where it describes none', async (t) => {
  const cpus = async (cpuinfo: { readonly [file: string]: string }) => {
    const root = testFolder(t, { proc: { meminfo: 'MemTotal:  1024 kB\n', ...cpuinfo } })
    return (await readInventory({ root, dataDirectory: '/data', statfs: async () => card })).machine.cpus
  }
  const two = 'processor\t: 0\nmodel name\t: ARMv6 processor : rev 7\n\nprocessor: 1\n'
  t.equal(await cpus({ cpuinfo: two }), 2)
  t.equal(await cpus({ cpuinfo: 'Hardware\t: BCM2835\n' }), 1)
  t.equal(await cpus({}), 1)
})

test('huge pages are counted by size, in the unit that Kubernetes names them by', async (t) => {
  const sizes = (kB: { readonly [folder: string]: string }) =>
    Object.fromEntries(Object.entries(kB).map(([folder, pages]) => [folder, { nr_hugepages: pages }]))
  const hugepages = sizes({ 'hugepages-64kB': '3\n', 'hugepages-2048kB': '2\n', 'hugepages-1048576kB': '1\n' })
  const root = testFolder(t, {
    proc: { meminfo: 'MemTotal:  1024 kB\n' },
    sys: { kernel: { mm: { hugepages } } },
  })
  const { machine } = await readInventory({ root, dataDirectory: '/data', statfs: async () => card })
  t.same(machine.hugePageBytes, { 'hugepages-64Ki': 3 * 2 ** 16, 'hugepages-2Mi': 2 ** 22, 'hugepages-1Gi': 2 ** 30 })
})

test('the name of the system is its pretty name, with or without quotes, and Linux where it has none', async (t) => {
  const image = async (release: string | undefined) => {
    const root = testFolder(t, {
      proc: { meminfo: 'MemTotal:  1024 kB\n' },
      etc: release === undefined ? {} : { 'os-release': release },
    })
    const { machine, system } = await readInventory({ root, dataDirectory: '/data', statfs: async () => card })
    t.same(machine.hugePageBytes, {}, 'a kernel without huge pages')
    t.match(system, { machineID: '', systemUUID: '', bootID: '', kernelVersion: '' })
    return system.osImage
  }
  t.equal(await image('PRETTY_NAME="Alpine Linux v3.21"\nID=alpine\n'), 'Alpine Linux v3.21')
  t.equal(await image('NAME=Void\nPRETTY_NAME=Void\n'), 'Void')
  t.equal(await image('OLD_PRETTY_NAME="Void"\n'), 'Linux')
  t.equal(await image(undefined), 'Linux')
})

test('the architecture has the name that images use', async (t) => {
  const { system } = await inventoryOf('pi-4-cgroup-v2')
  t.match(system.architecture, /^(amd64|386|arm64|arm)$/)
})

test('the description of a machine has each word once, and none that carries no meaning', async (t) => {
  const words = (manufacturer: string, model: string, version: string, maker = '', brand = '') =>
    machineDescription({ manufacturer, model, version }, { manufacturer: maker, brand })
  t.same(words('Raspberry Pi Foundation', 'Pi 4 Model B', 'b03114', 'ARM', 'Cortex-A72'), {
    board: 'Raspberry Pi Foundation Pi 4 Model B b03114',
    processor: 'ARM Cortex-A72',
  })
  t.same(words('Dell', 'Dell OptiPlex', '-', 'Intel', 'Intel N100'), {
    board: 'Dell OptiPlex',
    processor: 'Intel N100',
  })
  t.same(words(' QEMU ', 'QEMU', ' '), { board: 'QEMU' }, 'of equal words the first stays')
  t.same(words('', '-', '  ', 'AMD', ''), { processor: 'AMD' })
  t.same(words('', '', ''), {})
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
