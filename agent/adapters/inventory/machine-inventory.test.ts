import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { readMachineInventory } from './machine-inventory.ts'

function cell(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Files as the documents of Raspberry Pi and of the kernel describe them: not those of a machine that was seen. */
function treeOf(t: Test, files: { readonly [path: string]: string | Buffer }): string {
  const root = t.testdir()
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  return root
}

test('board, boot loader and power supply are read from the device tree', async (t) => {
  const root = treeOf(t, {
    'proc/device-tree/model': 'Raspberry Pi 4 Model B Rev 1.5\0',
    'proc/device-tree/system/linux,revision': cell(0xc03115),
    'proc/device-tree/chosen/bootloader/build-timestamp': cell(1_673_433_855),
    'proc/device-tree/chosen/bootloader/version': '8ba17717fbcedd4c3b6d4bce7e50c7af4155cba9\0',
    'proc/device-tree/chosen/power/max_current': cell(5_000),
  })
  t.same(await readMachineInventory(root), {
    ...{ model: 'Raspberry Pi 4 Model B Rev 1.5', revision: 'c03115', board: '4B 1.5' },
    ...{ memoryMegabytes: 4096, maker: 'Sony UK' },
    ...{ bootloaderDate: '2023-01-11', bootloader: '8ba17717fbcedd4c3b6d4bce7e50c7af4155cba9' },
    ...{ supplyMilliamps: 5000, disks: [], links: [] },
  })
})

test('without a revision in the device tree that of the processor counts', async (t) => {
  const root = treeOf(t, { 'proc/cpuinfo': 'processor\t: 0\nRevision\t: a02082\nSerial\t\t: 00000000deadbeef\n' })
  t.match(await readMachineInventory(root), { revision: 'a02082', board: '3B 1.2' })
})

test('disks are listed with what they report, and partitions are not', async (t) => {
  const block = (name: string, files: { readonly [file: string]: string }) =>
    Object.fromEntries(Object.entries(files).map(([file, content]) => [`sys/class/block/${name}/${file}`, content]))
  const root = treeOf(t, {
    ...block('mmcblk0', { size: '62333952\n', 'device/type': 'SD\n', 'device/name': 'SC32G\n' }),
    ...block('mmcblk0', { 'device/date': '03/2021\n', 'device/fwrev': '0x0\n' }),
    ...block('mmcblk0p1', { size: '524288\n' }),
    ...block('nvme0n1', { size: '1000215216\n', 'device/model': 'A disk  \n', 'device/firmware_rev': '2B2\n' }),
    ...block('sda', { size: '100\n', 'device/vendor': 'ACME\n', 'device/model': `${'x'.repeat(100)}\n` }),
    ...block('sdb', { size: '0\n' }),
    ...block('loop0', { size: '100\n' }),
  })
  t.same((await readMachineInventory(root)).disks, [
    { name: 'mmcblk0', kind: 'SD', bytes: 31_914_983_424, model: 'SC32G', made: '03/2021', firmware: '0x0' },
    { name: 'nvme0n1', kind: 'NVMe', bytes: 512_110_190_592, model: 'A disk', firmware: '2B2' },
    { name: 'sda', kind: 'SCSI', bytes: 51_200, model: `ACME ${'x'.repeat(64)}` },
  ])
})

test('network interfaces with a device are listed with driver and speed', async (t) => {
  const root = treeOf(t, {
    'sys/class/net/eth0/device/uevent': '',
    'sys/class/net/eth0/speed': '1000\n',
    'sys/class/net/eth1/device/uevent': '',
    'sys/class/net/eth1/speed': '-1\n',
    'sys/class/net/wlan0/device/uevent': '',
    'sys/class/net/wlan0/wireless/x': '',
    'sys/class/net/docker0/speed': '10000\n',
  })
  symlinkSync('../../../bus/platform/drivers/bcmgenet', join(root, 'sys/class/net/eth0/device/driver'))
  t.same((await readMachineInventory(root)).links, [
    { name: 'eth0', isWireless: false, driver: 'bcmgenet', megabits: 1000 },
    { name: 'eth1', isWireless: false },
    { name: 'wlan0', isWireless: true },
  ])
})

test('a machine that shows nothing has an empty inventory', async (t) => {
  t.same(await readMachineInventory(t.testdir()), { disks: [], links: [] })
})
