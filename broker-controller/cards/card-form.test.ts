import { test } from 'tap'
import { planCard, recogniseCard } from './card-form.ts'

const bookworm = {
  names: [
    'bcm2711-rpi-4-b.dtb',
    'cmdline.txt',
    'config.txt',
    'initramfs8',
    'initramfs_2712',
    'issue.txt',
    'kernel8.img',
    'overlays',
  ],
  commandLine:
    'console=serial0,115200 console=tty1 root=PARTUUID=4e639091-02 rootfstype=ext4 fsck.repair=yes rootwait quiet init=/usr/lib/raspberrypi-sys-mods/firstboot\n',
  config: '# For more options\ndtparam=audio=on\nauto_initramfs=1\narm_64bit=1\n',
  issue:
    'Raspberry Pi reference 2025-05-13\nGenerated using pi-gen, https://github.com/RPi-Distro/pi-gen, 4be6bbd0, stage2\n',
}
const trixie = {
  ...bookworm,
  names: [...bookworm.names, 'meta-data', 'network-config', 'user-data'],
  commandLine:
    'console=serial0,115200 console=tty1 root=PARTUUID=1d2e-02 rootfstype=ext4 fsck.repair=yes rootwait resize',
}

test('the image of Debian 12 and both of Debian 13 are recognised by what is on their boot partition', async (t) => {
  t.same(recogniseCard(bookworm), {
    kind: 'raspios',
    initFormat: 'systemd',
    system: 'Raspberry Pi reference 2025-05-13',
    commandLine: bookworm.commandLine.trim(),
  })
  t.match(recogniseCard(trixie), { initFormat: 'cloudinit-rpi', commandLine: trixie.commandLine })
  const withoutCloudInit = { ...trixie, names: bookworm.names }
  t.match(recogniseCard(withoutCloudInit), { initFormat: 'systemd' }, 'the first image of Debian 13')
  const upper = { ...bookworm, names: bookworm.names.map((name) => name.toUpperCase()) }
  t.match(recogniseCard(upper), { initFormat: 'systemd' }, 'as a FAT without long names has them')
})

test('another image is refused with what to use', async (t) => {
  for (const [change, reason] of [
    [{ commandLine: undefined }, /no cmdline.txt or config.txt/],
    [{ config: undefined }, /no cmdline.txt or config.txt/],
    [{ issue: undefined }, /is not Raspberry Pi OS/],
    [{ issue: 'Ubuntu 24.04' }, /is not Raspberry Pi OS/],
    [{ names: [...bookworm.names, 'kernel7.img'] }, /32-bit system.*Lite \(64-bit\)/],
    [{ names: [...bookworm.names, 'kernel.img'] }, /32-bit system/],
    [{ names: [...bookworm.names, 'kernel7l.img'] }, /32-bit system/],
    [{ names: ['cmdline.txt'] }, /no kernel8.img/],
    [{ config: 'arm_64bit=1\n' }, /older than Debian 12/],
    [{ config: '#auto_initramfs=1\n' }, /older than Debian 12/],
    [{ commandLine: '' }, /damaged cmdline.txt/],
    [{ commandLine: 'console=tty1 noroot=x' }, /damaged cmdline.txt/],
    [{ commandLine: 'root=a\nroot=b' }, /damaged cmdline.txt/],
  ] as const) {
    t.match(recogniseCard({ ...bookworm, ...change }), reason)
  }
})

test('what is shown of an image has no control characters', async (t) => {
  t.match(recogniseCard({ ...bookworm, issue: `\x1b[2J${'x'.repeat(200)}\nUsing pi-gen` }), { system: /^\?\[2Jx{76}$/ })
})

const own = {
  names: ['bootcode.bin', 'cmdline.txt', 'config.txt', 'issue.txt', 'vmlinuz-6.12.117+deb13-arm64'],
  commandLine: 'console=tty0 root=PARTUUID=b2a3b1e5-02 rw fsck.repair=yes net.ifnames=0  rootwait \n',
  config: 'arm_64bit=1\nupstream_kernel=1\n',
  issue: 'Debian 13 (trixie) with Bramble 0.1.0\nMade by build-image.sh of Bramble\n',
}

test('an image of scripts/build-image.sh is recognised, for which Raspberry Pi Imager has no settings', async (t) => {
  t.match(recogniseCard(own), {
    kind: 'own',
    initFormat: 'none',
    system: 'Debian 13 (trixie) with Bramble 0.1.0',
    commandLine: own.commandLine.trim(),
  })
  t.match(recogniseCard({ ...own, commandLine: 'quiet' }), /damaged cmdline.txt/)
  t.match(recogniseCard({ ...own, issue: 'Debian\nMade by me\n' }), /is not Raspberry Pi OS/)
})

test('packages are for Raspberry Pi OS, and a read-only root for what can have one', async (t) => {
  const [ours, debian12, debian13] = [own, bookworm, trixie].map(recogniseCard)
  if (typeof ours !== 'object' || typeof debian12 !== 'object' || typeof debian13 !== 'object') {
    t.fail('a form is not recognised')
    return
  }
  const wish = { hasPackages: true, isReadOnly: false, wasReadOnly: false }
  t.match(planCard(ours, wish), /has the packages of the agent already: leave out --packages/)
  t.equal(planCard(ours, { ...wish, hasPackages: false }), false)
  t.equal(planCard(ours, { ...wish, hasPackages: false, isReadOnly: true }), true)
  t.equal(planCard(ours, { ...wish, hasPackages: false, wasReadOnly: true }), true, 'as it was built')
  t.match(planCard(debian13, { ...wish, hasPackages: false }), /give the folder .* with --packages/)
  t.equal(planCard(debian13, wish), false)
  t.equal(planCard(debian13, { ...wish, isReadOnly: true }), true)
  t.equal(planCard(debian13, { ...wish, wasReadOnly: true }), false, 'a card of it can be made without')
  t.equal(planCard(debian12, wish), false)
  t.match(planCard(debian12, { ...wish, isReadOnly: true }), /--read-only is for Raspberry Pi OS of Debian 13/)
})
