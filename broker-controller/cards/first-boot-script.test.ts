/** The script of a card, run by sh in a folder that stands for the machine's root, with doubles of the programs that change a system. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { firstBootScript } from './first-boot-script.ts'
import { cardCommandLine } from './kernel-command-line.ts'

const status = 'boot/firmware/bramble-status.txt'
const fstab = `proc            /proc           proc    defaults          0       0
PARTUUID=1-01  /boot/firmware  vfat    defaults          0       2
PARTUUID=1-02  /               ext4    defaults,noatime  0       1
`

/** `doubles`: name of a program → its script. Each logs its words. */
function machine(t: Test, doubles: Readonly<Record<string, string>> = {}) {
  const root = testFolder(t)
  const put = (path: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text, { mode })
  }
  const usual = {
    sync: 'exit 0',
    systemctl: 'exit 0',
    dpkg: 'echo arm64',
    'dpkg-query': '[ ! -e $BRAMBLE_CARD_ROOT/installed ] || printf installed',
    mountpoint: 'exit 1',
    mount: 'echo "mount: no such device" >&2; exit 32',
    ip: 'echo default via 192.0.2.1',
    'apt-get': 'case " $* " in *" install "*) : >$BRAMBLE_CARD_ROOT/installed ;; esac',
  }
  for (const [name, script] of Object.entries({ ...usual, ...doubles })) {
    put(`doubles/${name}`, `#!/bin/sh\necho ${name} "$@" >>$BRAMBLE_CARD_ROOT/log\n${script}\n`, 0o755)
  }
  put('etc/fstab', fstab)
  put('boot/firmware/cmdline.txt', `${cardCommandLine('console=tty1 root=x systemd.run=/boot/firstrun.sh')}\n`)
  put('boot/firmware/bramble/first-boot.sh', firstBootScript)
  put('boot/firmware/bramble/packages/a_1_arm64.deb', 'package')
  const sum = execFileSync('sha256sum', { input: 'package' }).toString().slice(0, 64)
  put('boot/firmware/bramble/SHA256SUMS', `${sum}  packages/a_1_arm64.deb\n`)
  const run = (word?: string, { script = join(root, 'boot/firmware/bramble/first-boot.sh') } = {}) => {
    const env = { PATH: `${join(root, 'doubles')}:${process.env['PATH']}`, BRAMBLE_CARD_ROOT: root }
    const { status: code, stdout, stderr } = spawnSync('sh', [script, ...(word === undefined ? [] : [word])], { env })
    return { code, console: String(stdout), stderr: String(stderr) }
  }
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const has = (path: string) => existsSync(join(root, path))
  return { root, put, run, read, has, log: () => (has('log') ? read('log') : '') }
}

test('shellcheck finds nothing', async (t) => {
  t.equal(spawnSync('shellcheck', ['-'], { input: firstBootScript }).stdout.toString(), '')
})

test('at the first boot it puts itself into the system and removes its words, which leaves those of others', async (t) => {
  const { run, read, log } = machine(t)
  t.match(run(), {
    code: 0,
    console: 'bramble: Prepared. The machine restarts, then installs the packages.\n',
    stderr: '',
  })
  t.equal(
    read('boot/firmware/cmdline.txt'),
    'console=tty1 root=x systemd.run=/boot/firstrun.sh cgroup_enable=memory cgroup_memory=1\n',
  )
  t.equal(
    read('etc/fstab'),
    fstab.replace(
      /PARTUUID=1-01.*/,
      'PARTUUID=1-01 /boot/firmware vfat defaults,nofail,x-systemd.device-timeout=5min 0 2',
    ),
  )
  t.equal(read('etc/systemd/system.conf.d/60-bramble-card.conf'), '[Manager]\nRuntimeWatchdogSec=15s\n')
  t.equal(read('usr/local/lib/bramble-card/first-boot.sh'), firstBootScript)
  t.match(read('etc/systemd/system/multi-user.target.wants/bramble-card.service'), /first-boot.sh install/)
  t.match(read(status), /^Bramble, 20\d\d-.* by the clock of this machine:\nPrepared\./)
  t.notMatch(log(), /apt-get|systemctl/, 'nothing is installed yet')
  const before = read('etc/fstab')
  t.match(run(), { code: 0 }, 'once more, after a power cut')
  t.equal(read('etc/fstab'), before)
})

test('a boot partition that cannot be written does not make it restart for ever', async (t) => {
  const { put, run, log } = machine(t)
  put('boot/firmware/cmdline.txt.bramble/in-the-way', '')
  t.match(run(), { code: 1, console: /The boot partition cannot be written\. Write the card again/ })
  t.match(log(), 'systemctl --no-block start multi-user.target')
})

test('a root partition that cannot be written is reported on the boot partition', async (t) => {
  const { put, run, read } = machine(t)
  put('usr/local/lib/bramble-card', 'a file in the way')
  t.match(run(), { code: 0 })
  t.match(read(status), /The root partition cannot be written\nWrite the card again/)
})

test('the packages are installed without a network if they suffice, and the card is emptied', async (t) => {
  const { run, read, has, log } = machine(t)
  run()
  t.match(run('install'), { code: 0, stderr: '', console: /then joining\.\nbramble: The packages are installed\.\n$/ })
  t.match(log(), /^apt-get .* install --no-download --no-install-recommends .*\/packages\/a_1_arm64\.deb$/m)
  t.notMatch(log(), /apt-get .* update/)
  t.match(log(), /systemctl --no-block start bramble-first-boot.service/)
  t.match(read(status), /\nInstalling the packages, then joining\.\n$/, 'the agent writes the next text')
  for (const path of [
    'boot/firmware/bramble',
    'etc/systemd/system/bramble-card.service',
    'usr/local/lib/bramble-card',
  ]) {
    t.notOk(has(path), path)
  }
  t.ok(has('etc/systemd/system.conf.d/60-bramble-card.conf'), 'the watchdog stays')
})

test('a card that is to be read-only brings its script, gets overlayroot, and restarts when all is installed', async (t) => {
  const data = 'mkdir -p $BRAMBLE_CARD_ROOT/etc/bramble; echo data >$BRAMBLE_CARD_ROOT/etc/bramble/storage'
  const { put, run, log, has } = machine(t)
  put('boot/firmware/bramble/storage.sh', `#!/bin/sh\necho storage "$@" >>$BRAMBLE_CARD_ROOT/log\n${data}\n`)
  t.match(run(), { code: 0, console: /Prepared/ })
  t.match(log(), /^storage grow$/m)
  t.match(run('install'), { code: 0, stderr: '' })
  t.match(log(), /install --no-download .*a_1_arm64\.deb overlayroot busybox$/m)
  t.match(
    log(),
    /storage enable\n(.*\n)*.*systemctl --no-block start bramble-first-boot.service\n(.*\n)*systemctl --no-block reboot\n$/,
  )
  t.ok(has('usr/local/sbin/bramble-storage'), 'it stays, to update packages')
})

test('a read-only root that is not possible holds up nothing', async (t) => {
  const { put, run, log } = machine(t)
  put('boot/firmware/bramble/storage.sh', '#!/bin/sh\nexit 1\n')
  t.match(run(), { code: 0, console: /Prepared/ })
  t.match(run('install'), { code: 0, console: /The packages are installed/ })
  t.notMatch(log(), /overlayroot|reboot/)
})

test('a boot partition that comes late is mounted when it is there, and nothing is written where it is not', async (t) => {
  const late = 'mv $BRAMBLE_CARD_ROOT/late $BRAMBLE_CARD_ROOT/boot/firmware'
  const { root, run, read, has, put } = machine(t)
  run()
  const script = join(root, 'usr/local/lib/bramble-card/first-boot.sh')
  renameSync(join(root, 'boot/firmware'), join(root, 'late'))
  const console =
    'bramble: The boot partition cannot be mounted: mount: no such device. It is tried again each minute.\n'
  t.match(run('install', { script }), { code: 1, console })
  t.notOk(has('boot/firmware'))
  put('doubles/mount', `#!/bin/sh\n${late}\n`, 0o755)
  t.match(run('install', { script }), { code: 0, console: /The packages are installed/ })
  t.match(read(status), /Installing the packages/)
})

test('a card that a power cut has left empty is done if the agent is installed, and else named', async (t) => {
  const { root, run, read, has, put } = machine(t, { mountpoint: 'exit 0' })
  run()
  const script = join(root, 'usr/local/lib/bramble-card/first-boot.sh')
  rmSync(join(root, 'boot/firmware/bramble'), { recursive: true })
  t.match(run('install', { script }), { code: 1 })
  t.match(read(status), /The packages are not on the card any more\nWrite the card again/)
  put('installed', '')
  t.match(run('install', { script }), { code: 0 })
  t.notOk(has('etc/systemd/system/bramble-card.service'))
})

test('the unit does not ask for the boot partition before it starts: that is asked once only', async (t) => {
  const { run, read } = machine(t)
  run()
  t.notMatch(read('etc/systemd/system/bramble-card.service'), /Condition|RequiresMountsFor/)
})

test('what is not on the card is fetched, and with a keyring the agent too', async (t) => {
  const { run, log } = machine(t, {
    'apt-get': `case " $* " in
      *--no-download*) exit 100 ;;
      *" bramble-agent "*) : >$BRAMBLE_CARD_ROOT/installed ;;
    esac`,
  })
  t.match(run('install'), { code: 0 })
  t.match(log().match(/ (update|install .*)$/gm), [
    /install --no-download/,
    /update/,
    /install .*a_1_arm64.deb/,
    /update/,
    /install bramble-agent/,
  ])
})

test('what stops it is on the console and on the boot partition, with what to do, and written once', async (t) => {
  const { root, run, read } = machine(t, {
    'apt-get': "echo 'Get:1 something'; echo 'E: Could not resolve deb.debian.org' >&2; exit 100",
    ip: 'exit 0',
  })
  const first = run('install')
  t.match(first, {
    code: 1,
    console: /apt-get update failed: E: Could not resolve deb\.debian\.org \. This machine has no network/,
  })
  const text = read(status)
  t.match(text, /\nThis machine has no network\. Plug in a cable/)
  writeFileSync(join(root, status), text.replace(/^Bramble, .*/, 'Bramble, earlier'))
  t.equal(run('install').code, 1)
  t.match(read(status), /^Bramble, earlier\n.*\nThis machine has no network/, 'the same text is not written again')
})

test('a wrong clock is named where apt fails and there is a network', async (t) => {
  const { run, read } = machine(t, {
    'apt-get': 'exit 100',
    date: 'case $1 in +%s) echo 86400 ;; *) echo 1970-01-02 ;; esac',
  })
  t.equal(run('install').code, 1)
  t.match(read(status), /The clock of this machine is wrong/)
})

test('a damaged package, a 32-bit system and packages without the agent are reported', async (t) => {
  const damaged = machine(t)
  damaged.put('boot/firmware/bramble/packages/a_1_arm64.deb', 'pockage')
  t.equal(damaged.run('install').code, 1)
  t.match(damaged.read(status), /A file of the card is damaged: packages\/a_1_arm64\.deb: FAILED\nWrite the card again/)
  t.notMatch(damaged.log(), /apt-get/)
  const narrow = machine(t, { dpkg: 'echo armhf' })
  t.equal(narrow.run('install').code, 1)
  t.match(narrow.read(status), /This is the 32-bit system/)
  const other = machine(t, { 'apt-get': 'exit 0' })
  t.equal(other.run('install').code, 1)
  t.match(other.read(status), /bramble-agent is not among them/)
})
