/** Machines that start with a card of 'bramble-controller card': they install what it carries, and join. */
import { createHash } from 'node:crypto'
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { parseToken } from '../api/node/bootstrap-token.ts'
import { cardFiles, cardJoinFile } from '../broker-controller/cards/card-files.ts'
import { cardCommandLine, firstBootPath } from '../broker-controller/cards/kernel-command-line.ts'
import { bootMachine, flashMachine } from './support/machine.ts'
import { machineNetwork } from './support/machine-network.ts'
import { hubOn, installController, isNodeReady, testPackages } from './support/packaged.ts'
import { eventually } from './support/wait.ts'

const status = '/boot/firmware/bramble-status.txt'

test('a machine with a card installs the packages that it carries, and joins by itself', async (t) => {
  const packages = await testPackages()
  const network = await machineNetwork(t)
  const hubMachine = await bootMachine(t, {
    name: 'hub',
    network,
    prepare: (disk) => installController(disk, packages.controller),
  })
  const hub = await hubOn(t, hubMachine)
  const [, server = '', token = '', caHash = ''] =
    /join (\S+) --token (\S+) --ca-hash (\S+)/.exec(await hub.joinLine()) ?? []
  const folder = dirname(packages.agent)
  const runtime = (await readdir(folder)).find((name) => name.startsWith('bramble-runtime_')) ?? ''
  const machine = await flashMachine(t, {
    name: 'raspberrypi',
    network,
    async prepare(disk) {
      const boot = join(disk, 'boot/firmware')
      await mkdir(join(boot, 'bramble/packages'), { recursive: true })
      const carried = []
      for (const path of [packages.agent, join(folder, runtime)]) {
        const [fileName = '', bytes] = [path.split('/').at(-1), await readFile(path)]
        await copyFile(path, join(boot, 'bramble/packages', fileName))
        const sha256 = createHash('sha256').update(bytes).digest('hex')
        carried.push({ fileName, path, size: bytes.length, sha256 })
      }
      const parts = parseToken(token)
      if (parts === undefined) throw new Error(`The line of the controller has no token: ${token}`)
      const terms = cardJoinFile({ server, caHash, token: parts, expiration: undefined }, 'attic')
      const files = [...cardFiles(carried), [['bramble.yaml'], terms] as const]
      for (const [path, text] of files) await writeFile(join(boot, ...path), text, { mode: 0o755 })
      await writeFile(join(boot, 'cmdline.txt'), `${cardCommandLine('root=/dev/mmcblk0p2')}\n`)
      await writeFile(join(disk, 'etc/fstab'), 'PARTUUID=1-01 /boot/firmware vfat noauto 0 2\n')
    },
  })

  await t.test('the first boot puts the script into the system', async (t) => {
    await machine.powerOn()
    // What systemd-run-generator starts where the kernel has the words.
    t.match(await machine.run(firstBootPath), /bramble: Prepared/)
    t.notMatch(await machine.run('cat /boot/firmware/cmdline.txt'), /systemd\.run/)
    t.match(await machine.run('cat /etc/fstab'), /noauto,nofail,x-systemd\.device-timeout=5min/)
    t.match(await machine.run('systemd-analyze verify /etc/systemd/system/bramble-card.service 2>&1'), /^$/)
  })

  await t.test('a package that the card has damaged is named on it, and nothing is installed', async (t) => {
    const path = `/boot/firmware/bramble/packages/${runtime}`
    await machine.run(`cp ${path} /var/tmp/whole && truncate --size=-1 ${path}`)
    await machine.reboot()
    await eventually('it is on the card', async () =>
      /damaged: packages\/bramble-runtime/.test(await machine.run(`cat ${status}`)),
    )
    t.match((await machine.tryRun('dpkg-query --status bramble-agent')).code, 1)
    await machine.run(`mv /var/tmp/whole ${path}`)
  })

  await t.test(
    'the next boot installs the packages without a network, and waits on the card for its controller',
    async (t) => {
      await hubMachine.run('systemctl stop bramble-controller')
      await machine.reboot()
      await eventually(
        'it waits',
        async () => /Cannot join yet.*nothing listens/.test(await machine.run(`cat ${status}`)),
        { withinMs: 120_000 },
      )
      await eventually('the script is done', async () =>
        /The packages are installed/.test(await machine.journal('bramble-card')),
      )
      const unit = '/etc/systemd/system/bramble-card.service'
      await eventually('its unit is gone', async () => (await machine.tryRun(`ls ${unit}`)).code !== 0)
      t.match(await machine.run(`cat ${status}`), /Cannot join yet/, 'the reason stays on the card')
      t.match(
        (await machine.tryRun('ls /boot/firmware/bramble /etc/systemd/system/bramble-card.service')).code,
        2,
        'all of it is gone',
      )
      t.equal((await machine.run('systemctl show --property=RuntimeWatchdogUSec --value')).trim(), '15s')
    },
  )

  await t.test('it joins with the name on the card, which then holds no token', async (t) => {
    await hubMachine.run('systemctl start bramble-controller')
    await eventually('it is Ready', () => isNodeReady(hub, 'attic'), { withinMs: 120_000 })
    await eventually('that is on the card', async () =>
      /Joined .* as node attic/.test(await machine.run(`cat ${status}`)),
    )
    await eventually(
      'the file is gone',
      async () => (await machine.tryRun('ls /boot/firmware/bramble.yaml')).code !== 0,
    )
    t.equal((await machine.tryRun(`grep -rl ${token} /boot /var/lib/bramble`)).stdout, '')
  })
})
