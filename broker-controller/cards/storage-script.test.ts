/** The storage script, run by sh in a folder that stands for the machine's root, with doubles of the programs that change disks. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { storageScript } from './storage-script.ts'

const mib = 2048
const fstab = `PARTUUID=1-01 /boot/firmware vfat defaults 0 2
PARTUUID=1-02 / ext4 defaults,noatime 0 1
`
const dump = `label: dos
label-id: 0x1

/dev/mmcblk0p1 : start=       16384, size=     1048576, type=c
/dev/mmcblk0p2 : start=     1064960, size=     5242880, type=83
`

type Disk = { readonly mibs?: number; readonly rootMibs?: number; readonly third?: boolean; readonly wish?: string }

/** A card of 32 GB with an image of 3 GB, which asks for a read-only root. */
function machine(t: Test, { mibs = 30_000, rootMibs = 2560, third = false, wish = 'read-only\n' }: Disk = {}) {
  const root = testFolder(t)
  const put = (path: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text, { mode })
  }
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const has = (path: string) => existsSync(join(root, path))
  const disk = 'sys/devices/mmc/block/mmcblk0'
  put(`${disk}/size`, `${mibs * mib}\n`)
  put(`${disk}/mmcblk0p2/partition`, '2\n')
  put(`${disk}/mmcblk0p2/start`, '1064960\n')
  put(`${disk}/mmcblk0p2/size`, `${rootMibs * mib}\n`)
  mkdirSync(join(root, 'sys/class/block'), { recursive: true })
  for (const name of ['mmcblk0', 'mmcblk0/mmcblk0p2']) {
    symlinkSync(`../../devices/mmc/block/${name}`, join(root, 'sys/class/block', name.split('/').at(-1) ?? ''))
  }
  if (third) put('sys/class/block/mmcblk0p3/partition', '3\n')
  put('boot/firmware/bramble/storage', wish)
  put('boot/firmware/cmdline.txt', 'console=tty0 root=PARTUUID=1-02 rw\n')
  put('etc/fstab', fstab)
  put('var/lib/systemd/timesync/clock', '')
  put('table', dump)
  const log = `echo "$(basename "$0") $*" >>$BRAMBLE_CARD_ROOT/log`
  const doubles = {
    sync: 'exit 0',
    findmnt:
      'case $* in *FSTYPE*) cat $BRAMBLE_CARD_ROOT/type 2>/dev/null || echo ext4 ;; *) echo /dev/mmcblk0p2 ;; esac',
    sfdisk: 'case $* in *--dump*) cat $BRAMBLE_CARD_ROOT/table ;; *) cat >$BRAMBLE_CARD_ROOT/table ;; esac',
    partx:
      'mkdir -p $BRAMBLE_CARD_ROOT/sys/class/block; ! grep -q mmcblk0p3 $BRAMBLE_CARD_ROOT/table || mkdir -p $BRAMBLE_CARD_ROOT/sys/class/block/mmcblk0p3',
    resize2fs: 'exit 0',
    'mkfs.ext4': 'exit 0',
    blkid: 'echo 1234-uuid',
    mount: 'exit 0',
    umount: 'exit 0',
  }
  for (const [name, text] of Object.entries(doubles)) put(`doubles/${name}`, `#!/bin/sh\n${log}\n${text}\n`, 0o755)
  put('bramble-storage', storageScript, 0o755)
  const storage = (word = 'grow') => {
    const env = { PATH: `${join(root, 'doubles')}:${process.env['PATH']}`, BRAMBLE_CARD_ROOT: root }
    const { status: code, stdout, stderr } = spawnSync('sh', [join(root, 'bramble-storage'), word], { env })
    return { code, out: String(stdout), err: String(stderr) }
  }
  return { root, put, read, has, storage, log: () => (has('log') ? read('log') : '') }
}

const third = /mmcblk0p3 : start= *(\d+), size= *(\d+), type=83/
const second = /mmcblk0p2 : start= *(\d+), size= *(\d+), type=83/

test('shellcheck finds nothing', async (t) => {
  t.equal(spawnSync('shellcheck', ['-'], { input: storageScript }).stdout.toString(), '')
})

test('a root that is not to be read-only gets the whole card, once', async (t) => {
  for (const wish of ['', 'writable\n', 'read-only2\n']) {
    const { storage, read, has, log } = machine(t, { wish })
    t.same(storage(), { code: 0, out: '', err: '' })
    t.equal(Number(second.exec(read('table'))?.[2]), 30_000 * mib - 1_064_960)
    t.match(read('table'), /label-id: 0x1\n/, 'its number stays, by which the kernel finds the root')
    t.match(log(), /sfdisk --quiet --force --no-reread \/dev\/mmcblk0\npartx .*\nresize2fs \/dev\/mmcblk0p2\n/)
    t.notMatch(log(), /mkfs/)
    t.equal(read('etc/bramble/storage'), 'root\n')
    t.equal(read('etc/fstab'), fstab)
    t.notOk(has('etc/systemd/system/docker.service.d'))
    const before = log()
    t.match(storage(), { code: 0 })
    t.equal(log(), before, 'the next boot changes nothing')
  }
})

test('a root that is to be read-only gets 6 GiB, and the rest is for data', async (t) => {
  const { storage, read, log } = machine(t)
  t.match(storage(), { code: 0, err: '' })
  const [, start, size] = third.exec(read('table')) ?? []
  t.equal(Number(start) % mib, 0)
  t.equal(Number(second.exec(read('table'))?.[2]), Number(start) - 1_064_960, 'there is no gap between them')
  t.equal(Number(start) + Number(size), 30_000 * mib)
  t.match(log(), /mkfs.ext4 -q -F -L bramble-data -m 1 \/dev\/mmcblk0p3\n/)
  t.equal(
    read('etc/fstab'),
    `${fstab}UUID=1234-uuid /var/lib/bramble-data ext4 defaults,noatime,nofail,x-systemd.device-timeout=2min 0 2
/var/lib/bramble-data/bramble /var/lib/bramble none bind,nofail 0 0
/var/lib/bramble-data/containerd /var/lib/containerd none bind,nofail 0 0
/var/lib/bramble-data/docker /var/lib/docker none bind,nofail 0 0
/var/lib/bramble-data/systemd /var/lib/systemd none bind,nofail 0 0
`,
  )
  t.equal(read('etc/bramble/storage'), 'data\n')
})

test('what there was in these folders is copied, and Docker and the agent do not start without them', async (t) => {
  const { storage, read, has } = machine(t)
  storage()
  t.ok(has('var/lib/bramble-data/systemd/timesync/clock'))
  for (const [unit, path] of [
    ['docker', 'docker'],
    ['containerd', 'containerd'],
    ['bramble-agent', 'bramble'],
    ['bramble-first-boot', 'bramble'],
  ]) {
    const text = read(`etc/systemd/system/${unit}.service.d/60-bramble-storage.conf`)
    t.equal(text, `[Unit]\nRequiresMountsFor=/var/lib/${path}\n`)
  }
  t.match(read('etc/systemd/journald.conf.d/60-bramble-storage.conf'), /Storage=volatile/)
})

test('a card that cannot have both partitions gets a writable root, with the reason', async (t) => {
  for (const [disk, reason] of [
    [{ mibs: 7_400 }, /the card has 7400 MiB, and 8712 MiB are needed\. It stays writable/],
    [{ rootMibs: 20_000 }, /the root partition is larger than a read-only one/],
    [{ third: true }, /there is a third partition, which is not from here/],
  ] as const) {
    const { storage, read, log } = machine(t, disk)
    const { code, out } = storage()
    t.equal(code, 0)
    t.match(out, reason)
    t.equal(read('etc/bramble/storage'), 'root\n')
    t.notMatch(log(), /mkfs/, 'nothing is formatted')
    t.notMatch(read('table'), third)
  }
})

test('it continues after a power cut at any step, and does not make the partition twice', async (t) => {
  for (const step of ['sfdisk', 'partx', 'resize2fs', 'mkfs.ext4', 'blkid', 'mount', 'umount']) {
    const { put, root, storage, read, has } = machine(t)
    const whole = read(`doubles/${step}`)
    put(`doubles/${step}`, '#!/bin/sh\necho cut >&2\nexit 1\n')
    t.match(storage(), { code: 1, err: /bramble-storage: .*tried again at the next boot/s }, step)
    t.notOk(has('etc/bramble/storage'), step)
    t.equal(read('etc/fstab'), fstab, step)
    rmSync(join(root, 'doubles', step))
    put(`doubles/${step}`, whole, 0o755)
    t.match(storage(), { code: 0, err: '' }, step)
    t.equal(read('table').match(/mmcblk0p3/g)?.length, 1, step)
    t.equal(read('etc/fstab').match(/bramble-data ext4/g)?.length, 1, step)
    t.equal(read('etc/bramble/storage'), 'data\n', step)
    t.notOk(has('etc/bramble/storage.begun'), step)
  }
})

test('a root that is not the second partition of a card is left alone', async (t) => {
  const { put, storage, log } = machine(t)
  put('doubles/findmnt', '#!/bin/sh\necho /dev/mapper/root\n', 0o755)
  t.match(storage(), { code: 1, err: /The root is \/dev\/mapper\/root, which is not the second partition of a card/ })
  t.notMatch(log(), /sfdisk|resize2fs/)
})

test('the root is read-only from the next start on if overlayroot is installed, else once it is', async (t) => {
  const overlayroot = 'usr/share/initramfs-tools/scripts/init-bottom/overlayroot'
  const image = machine(t)
  image.put(overlayroot, '')
  image.put('usr/bin/busybox', '')
  t.match(image.storage(), { code: 0 })
  t.equal(image.read('etc/overlayroot.local.conf'), 'overlayroot="tmpfs:recurse=0"\n')

  const card = machine(t)
  t.match(card.storage(), { code: 0 })
  t.notOk(card.has('etc/overlayroot.local.conf'))
  t.match(card.storage('enable'), { code: 1, err: /overlayroot and busybox are missing/ })
  card.put(overlayroot, '')
  t.match(card.storage('enable'), { code: 1 }, 'its part of the initramfs would end without grep')
  card.put('usr/bin/busybox', '')
  t.match(card.storage('enable'), { code: 0 })
  t.ok(card.has('etc/overlayroot.local.conf'))

  const plain = machine(t, { wish: '' })
  plain.put(overlayroot, '')
  plain.put('usr/bin/busybox', '')
  plain.storage()
  t.match(plain.storage('enable'), { code: 1, err: /no partition for data/ }, 'Docker would fill the memory')
  t.notOk(plain.has('etc/overlayroot.local.conf'))
})

test('a writable start is a word on the boot partition, and both ways are shown', async (t) => {
  const { put, storage, read } = machine(t)
  t.match(storage('writable'), { code: 1, err: /The root of this machine is always writable/ })
  put('usr/share/initramfs-tools/scripts/init-bottom/overlayroot', '')
  put('usr/bin/busybox', '')
  storage()
  put('type', 'overlay\n')
  t.match(storage('status').out, /The root is read-only: .*\nIt is read-only after the next start\.\n/)
  t.match(storage('writable'), { code: 0, out: /The root is read-only: .*\nIt is writable after the next start\.\n/ })
  const words = 'console=tty0 root=PARTUUID=1-02 rw'
  t.equal(read('boot/firmware/cmdline.txt'), `${words} overlayroot=disabled\n`)
  storage('writable')
  t.equal(read('boot/firmware/cmdline.txt'), `${words} overlayroot=disabled\n`, 'once')
  put('type', 'ext4\n')
  t.match(storage('read-only').out, /The root is writable\.\nIt is read-only after the next start\.\n/)
  t.equal(read('boot/firmware/cmdline.txt'), `${words}\n`)
})

test('another word is refused with the usage', async (t) => {
  t.match(machine(t).storage('x'), { code: 64, err: /Usage: bramble-storage grow/ })
})
