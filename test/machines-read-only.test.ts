/**
 * A machine whose root is read-only, as bramble-storage sets it up: what outlives a restart, and a boot without the data. It has no initramfs,
 * so an earlier copy of its root takes the place of the overlay; its data partition is a folder.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { storageScript } from '../broker-controller/cards/storage-script.ts'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { bootMachine, flashMachine, type Machine } from './support/machine.ts'
import { commandOrThrow } from './support/machine-commands.ts'
import { machineNetwork } from './support/machine-network.ts'
import { hubOn, installController, installOnDisk, isNodeReady, testPackages } from './support/packaged.ts'
import { eventually } from './support/wait.ts'

const dataFolder = '/srv/data-partition'
/** All that a restart takes back where the root is read-only, and that a machine of a test can write. */
const lost = ['etc', 'root', 'var/lib', 'var/log', 'usr/local']

test('a machine with a read-only root is the same node with the same pods after each restart', async (t) => {
  const packages = await testPackages()
  const network = await machineNetwork(t)
  const hubMachine = await bootMachine(t, {
    name: 'hub',
    network,
    prepare: (disk) => installController(disk, packages.controller),
  })
  const hub = await hubOn(t, hubMachine)
  const doubles = await doublesOfDisks(testFolder(t))
  const join = await hub.joinLine()
  const machine = await flashMachine(t, {
    name: 'attic',
    network,
    async prepare(disk) {
      await installOnDisk(disk, packages.agent)
      await settle(disk, doubles)
      await writeFile(`${disk}/boot/firmware/bramble.yaml`, `join: ${join}\n`)
    },
  })
  const uid = () => hub.kubectl('get', 'node', 'attic', '--output', 'jsonpath={.metadata.uid}')
  const phase = () => hub.kubectl('get', 'pod', 'hello', '--output', 'jsonpath={.status.phase}')
  const containers = async () => (await machine.run('docker ps --all --quiet --no-trunc')).trim()
  let first = ''

  await t.test('it joins, and its identity is on the data partition', async (t) => {
    await machine.powerOn()
    await eventually('it is Ready', () => isNodeReady(hub, 'attic'), { withinMs: 120_000 })
    t.match(await machine.run(`ls ${dataFolder}/bramble/agent`), /identity\.json/)
    t.match(await machine.run('findmnt --noheadings --output SOURCE /var/lib/bramble'), /data-partition\/bramble/)
    t.match(await machine.run('systemctl show --property=RequiresMountsFor docker'), /\/var\/lib\/docker/)
    first = await uid()
    await machine.importImage('test/busybox:1')
    await hub.kubectlWith(pod, 'apply', '--filename', '-')
    await eventually('the pod runs', async () => /^Running$/.test(await phase()), { withinMs: 120_000 })
  })

  await t.test('after a power cut that takes back all else it is the same node, without its controller', async (t) => {
    const before = await containers()
    await machine.run('echo changed >/etc/changed; journalctl --sync')
    await hubMachine.powerOff()
    await machine.cutPower()
    await takeBack(machine)
    await machine.powerOn()
    t.not((await machine.tryRun('ls /etc/changed')).code, 0)
    await eventually('the pod runs again', async () => (await machine.run('docker ps --quiet')).trim() !== '', {
      withinMs: 120_000,
    })
    await hubMachine.powerOn()
    await eventually('it is Ready', () => isNodeReady(hub, 'attic'), { withinMs: 120_000 })
    t.equal(await uid(), first)
    t.ok(before !== '' && (await containers()) !== '', 'Docker has its containers')
  })

  await t.test('without its data it boots and can be reached, and the agent does not start', async (t) => {
    await machine.powerOff()
    const fstab = machine.disk('/etc/fstab')
    const whole = await readFile(fstab, 'utf8')
    await writeFile(fstab, whole.replace(`${dataFolder} `, '/srv/missing '))
    await machine.powerOn()
    t.not((await machine.tryRun('systemctl is-active bramble-agent')).code, 0)
    t.not((await machine.tryRun('ls /var/lib/bramble/agent/identity.json')).code, 0, 'it would have another identity')
    await machine.powerOff()
    await writeFile(fstab, whole)
    await machine.powerOn()
    await eventually('it is Ready', () => isNodeReady(hub, 'attic'), { withinMs: 120_000 })
    t.equal(await uid(), first)
  })
})

const pod = `apiVersion: v1
kind: Pod
metadata: { name: hello }
spec:
  containers: [{ name: hello, image: 'test/busybox:1', imagePullPolicy: Never, command: [sleep, '100000'] }]
`

/** Programs that change partitions, which a machine of a test has none of. */
async function doublesOfDisks(folder: string): Promise<string> {
  const texts = {
    findmnt: 'echo /dev/mmcblk0p2',
    sfdisk: 'cat',
    partx: 'exit 0',
    resize2fs: 'exit 0',
    'mkfs.ext4': 'exit 0',
    blkid: 'echo 1234',
    mount: 'exit 0',
    umount: 'exit 0',
  }
  for (const [name, text] of Object.entries(texts)) {
    await writeFile(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  }
  return folder
}

/** What bramble-storage does at the first boot, with a folder in place of the partition, and without Docker's: that is a mount of its own already. */
async function settle(disk: string, doubles: string): Promise<void> {
  const blocks = join(disk, 'sys/class/block/mmcblk0')
  await mkdir(join(blocks, 'mmcblk0p2'), { recursive: true })
  await writeFile(join(blocks, 'size'), '60000000\n')
  for (const [name, value] of Object.entries({ partition: 2, start: 1_064_960, size: 5_242_880 })) {
    await writeFile(join(blocks, 'mmcblk0p2', name), `${value}\n`)
  }
  await commandOrThrow('ln', ['-s', 'mmcblk0/mmcblk0p2', join(disk, 'sys/class/block/mmcblk0p2')])
  await mkdir(join(disk, 'boot/firmware/bramble'), { recursive: true })
  await writeFile(join(disk, 'boot/firmware/bramble/storage'), 'read-only\n')
  await writeFile(join(disk, 'etc/fstab'), '# none\n')
  const script = join(disk, 'usr/local/sbin/bramble-storage')
  await mkdir(join(disk, 'usr/local/sbin'), { recursive: true })
  await writeFile(script, storageScript, { mode: 0o755 })
  const settings = [`PATH=${doubles}:${process.env['PATH']}`, `BRAMBLE_CARD_ROOT=${disk}`]
  await commandOrThrow('env', [...settings, 'sh', script, 'grow'])
  await rm(join(disk, 'sys/class'), { recursive: true })
  await commandOrThrow('mv', [join(disk, 'var/lib/bramble-data'), join(disk, dataFolder)])
  await mkdir(join(disk, 'var/lib/bramble-data'))
  const lines = (await readFile(join(disk, 'etc/fstab'), 'utf8'))
    .replace(/^UUID=1234 (\S+) .*$/m, `${dataFolder} $1 none bind,nofail 0 0`)
    .replace(/^.*\/(docker|containerd) none bind.*\n/gm, '')
  await writeFile(join(disk, 'etc/fstab'), lines)
  await mkdir(join(disk, 'srv/root'), { recursive: true })
  for (const folder of lost) {
    await mkdir(join(disk, 'srv/root', folder), { recursive: true })
    await commandOrThrow('cp', ['--archive', `${join(disk, folder)}/.`, join(disk, 'srv/root', folder)])
  }
}

/** The machine is off. */
async function takeBack(machine: Machine): Promise<void> {
  for (const folder of lost) {
    await rm(machine.disk(`/${folder}`), { recursive: true })
    await commandOrThrow('cp', ['--archive', machine.disk(`/srv/root/${folder}`), machine.disk(`/${folder}`)])
  }
}
