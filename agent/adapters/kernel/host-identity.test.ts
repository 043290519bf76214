import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { savedTree } from '../../testing/saved-trees.ts'
import { readBootID, readHardwareIdentity } from './host-identity.ts'

async function machineWith(t: Test, files: { readonly [path: string]: string }): Promise<string> {
  const root = testFolder(t)
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), content)
  }
  return root
}

test('a Pi is known by the serial number of its board', async (t) => {
  const pi = await machineWith(t, {
    'proc/device-tree/serial-number': '10000000deadbeef\0',
    'proc/device-tree/model': 'Raspberry Pi 4 Model B Rev 1.4\0',
    'proc/cpuinfo': 'processor\t: 0\n\nRevision\t: c03114\nSerial\t\t: 10000000deadbeef\n',
    'etc/machine-id': '0123456789abcdef0123456789abcdef\n',
  })
  t.same(await readHardwareIdentity(pi), {
    boardSerial: '10000000deadbeef',
    machineID: '0123456789abcdef0123456789abcdef',
    model: 'Raspberry Pi 4 Model B Rev 1.4',
  })
})

test('a board without a device tree still has its serial number in cpuinfo', async (t) => {
  const pi = await machineWith(t, { 'proc/cpuinfo': 'Serial\t\t: 00000000aabbccdd\nModel\t\t: x\n' })
  t.same(await readHardwareIdentity(pi), { boardSerial: '00000000aabbccdd' })
})

test('a PC is known by its DMI, unless its maker filled nothing in', async (t) => {
  const dmi = 'sys/class/dmi/id'
  const good = {
    [`${dmi}/product_uuid`]: '4c4c4544-0042\n',
    [`${dmi}/board_serial`]: '/7GZ/CN\n',
    [`${dmi}/sys_vendor`]: 'Dell\n',
  }
  t.same(await readHardwareIdentity(await machineWith(t, good)), {
    boardSerial: '/7GZ/CN',
    systemUUID: '4c4c4544-0042',
    model: 'Dell',
  })
  await t.test('makers’ fillers', async (t) => {
    const filler = {
      [`${dmi}/product_uuid`]: '03000200-0400-0500-0006-000700080009\n',
      [`${dmi}/board_serial`]: 'To be filled by O.E.M.\n',
      [`${dmi}/product_serial`]: 'Default string\n',
      'proc/cpuinfo': 'Serial\t\t: 0000000000000000\n',
      'etc/machine-id': 'uninitialized\n',
    }
    t.same(await readHardwareIdentity(await machineWith(t, filler)), {})
  })
})

test('the identity and the boot of a saved machine are read', async (t) => {
  const root = savedTree('debian-12-cgroup-v1')
  t.match(await readHardwareIdentity(root), { systemUUID: String, machineID: /^[0-9a-f]{32}$/ })
  t.match(await readBootID(root), /^[0-9a-f-]{36}$/)
})

test('a machine that shows nothing has no identity, without an error', async (t) => {
  t.same(await readHardwareIdentity(testFolder(t)), {})
  t.equal(await readBootID(testFolder(t)), undefined)
})

test('placeholders of manufacturers and emulators do not identify a machine', async (t) => {
  for (const filler of [
    'To be filled by O.E.M.',
    'to be filled by OEM',
    'System Serial Number',
    'Chassis Serial Number',
    'Base Board Serial Number',
    'Not Specified',
    'N/A',
    '000-000',
    'FFFF',
    'xxxx',
    'None',
  ]) {
    const root = await machineWith(t, { 'sys/class/dmi/id/board_serial': `${filler}\n` })
    t.same(await readHardwareIdentity(root), {}, filler)
  }
  for (const mark of ['PF-None-1', 'x1', 'Default string 7', 'ISystem Serial Number']) {
    const root = await machineWith(t, { 'sys/class/dmi/id/board_serial': `${mark}\n` })
    t.same(await readHardwareIdentity(root), { boardSerial: mark })
  }
})

test('the serial number of cpuinfo is one word of its own line', async (t) => {
  const serialIn = async (cpuinfo: string) =>
    (await readHardwareIdentity(await machineWith(t, { 'proc/cpuinfo': cpuinfo }))).boardSerial
  t.equal(await serialIn('Serial\t\t: 10000000aabbccdd\n'), '10000000aabbccdd')
  t.equal(await serialIn('Serial:  10000000aabbccdd'), '10000000aabbccdd')
  t.equal(await serialIn('Board Serial: 10000000aabbccdd\n'), undefined)
  t.equal(await serialIn('Serial: two words\n'), undefined)
})

test('an empty file does not identify a machine', async (t) => {
  t.same(
    await readHardwareIdentity(await machineWith(t, { 'etc/machine-id': '\n', 'proc/device-tree/model': '\0' })),
    {},
  )
  t.equal(await readBootID(testFolder(t)), undefined)
})
