import { test } from 'tap'
import { cardCommandLine, growsByWord } from './kernel-command-line.ts'

const added =
  'cgroup_enable=memory cgroup_memory=1 systemd.run=/boot/firmware/bramble/first-boot.sh systemd.run_success_action=reboot systemd.run_failure_action=none systemd.unit=kernel-command-line.target'

test('the words of a card follow those of the image, once', async (t) => {
  const line = cardCommandLine('console=tty1 root=PARTUUID=1-02  rootwait')
  t.equal(line, `console=tty1 root=PARTUUID=1-02 rootwait ${added}`)
  t.equal(cardCommandLine(line), line, 'also when it is made twice')
})

test('words against memory limits are removed, and those of Raspberry Pi Imager stay', async (t) => {
  t.equal(cardCommandLine('cgroup_disable=memory root=x cgroup_memory=0'), `root=x ${added}`)
  t.equal(
    cardCommandLine('root=x systemd.run=/boot/firstrun.sh systemd.run_success_action=reboot'),
    `root=x systemd.run=/boot/firstrun.sh ${added}`,
  )
})

test('the system of a read-only card does not grow its root, and that of another one does again', async (t) => {
  const image = 'root=x rootwait resize'
  t.ok(growsByWord(image))
  t.notOk(growsByWord('root=x init=/usr/lib/raspberrypi-sys-mods/firstboot resize2'))
  t.equal(cardCommandLine(image), `root=x rootwait resize ${added}`)
  const readOnly = cardCommandLine(image, { isReadOnly: true })
  t.equal(readOnly, `root=x rootwait ${added}`)
  t.equal(cardCommandLine(readOnly, { isReadOnly: true, wasReadOnly: true }), readOnly)
  t.equal(cardCommandLine(readOnly, { wasReadOnly: true }), `root=x rootwait resize ${added}`)
})
