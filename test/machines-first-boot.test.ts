/** Cards are flashed with the agent's package and a bramble.yaml: what happens when the machines are switched on. */
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { bootMachine, flashMachine } from './support/machine.ts'
import { machineNetwork } from './support/machine-network.ts'
import { hubOn, installController, installOnDisk, isNodeReady, testPackages } from './support/packaged.ts'
import { eventually } from './support/wait.ts'

/** The start of the agent at this boot finds that the machine has not joined, and ends when it just has. */
async function joinsWhileLookedFor(disk: string): Promise<void> {
  const [usual, moved] = ['usr/lib/bramble-agent/has-joined', 'usr/lib/bramble-agent/has-joined.usual']
  await rename(join(disk, usual), join(disk, moved))
  const script = `#!/bin/sh
/${moved}; found=$?
until [ -e /var/lib/bramble/agent/identity.json ]; do sleep 0.1; done
exit $found
`
  await writeFile(join(disk, usual), script, { mode: 0o755 })
}

test('machines join by themselves at their first boot', async (t) => {
  const packages = await testPackages()
  const network = await machineNetwork(t)
  const prepare = (disk: string) => installController(disk, packages.controller)
  const hubMachine = await bootMachine(t, { name: 'hub', network, prepare })
  const hub = await hubOn(t, hubMachine)
  const line = await hub.joinLine()
  const flash = (boardSerial: string, file: string, change?: (disk: string) => Promise<void>) =>
    flashMachine(t, {
      name: 'raspberrypi',
      network,
      boardSerial,
      machineID: '0123456789abcdef0123456789abcdef',
      async prepare(disk) {
        await installOnDisk(disk, packages.agent)
        await mkdir(join(disk, 'boot/firmware'), { recursive: true })
        await writeFile(join(disk, 'boot/firmware/bramble.yaml'), file)
        await change?.(disk)
      },
    })
  const one = await flash('10000000aaaaaaaa', `join: ${line}\n`)
  const two = await flash('10000000bbbbbbbb', `join: ${line}\n`, joinsWhileLookedFor)
  const journal = async (machine: typeof one) => machine.journal('bramble-first-boot')

  await t.test('a machine waits for its controller, and holds up nothing meanwhile', async (t) => {
    await hubMachine.run('systemctl stop bramble-controller')
    await one.powerOn()
    await eventually('it logs what it waits for', async () =>
      /Cannot join yet.*nothing listens/.test(await journal(one)),
    )
    t.match(await one.run('systemctl is-system-running'), /running/)
    t.match(await one.run('systemctl is-active bramble-agent || true'), /inactive/)
    await hubMachine.run('systemctl start bramble-controller')
    await eventually('it is Ready', () => isNodeReady(hub, 'raspberrypi'), { withinMs: 90_000 })
  })

  await t.test('the card then holds no token', async (t) => {
    await eventually('the file is gone', async () => (await one.tryRun('ls /boot/firmware/bramble.yaml')).code !== 0)
    await eventually('and that is logged', async () => /overwritten and removed/.test(await journal(one)))
    t.equal((await one.tryRun(`grep -rl ${line.split(' ')[4]} /boot /var/lib/bramble`)).stdout, '')
  })

  await t.test(
    'a copied card gets a name with the serial number of its board, and the operator an Event about the copy',
    async (t) => {
      const began = performance.now()
      await two.powerOn()
      await eventually('it is Ready', () => isNodeReady(hub, 'raspberrypi-bbbbbbbb'), { withinMs: 60_000 }).catch(
        async (error: unknown) => {
          t.comment(await journal(two), await hubMachine.journal('bramble-controller'))
          throw error
        },
      )
      t.comment(`Ready ${Math.round(performance.now() - began)} ms after it was switched on`)
      t.match(await journal(two), /name is taken.*in use by another machine that is live/)
      t.notMatch(await journal(two), /10000000aaaaaaaa/, 'it does not learn which machine that is')
      const events = await hub.kubectl('get', 'events', '--all-namespaces', '-o', 'wide')
      t.match(events, /NodeNameInUse.*Both have the same machine-id/, 'the operator does, and why')
      t.ok(await isNodeReady(hub, 'raspberrypi'), 'the first one is not disturbed')
    },
  )

  await t.test('a file that is wrong stays where it is, and the journal names the field', async (t) => {
    await two.write('/boot/bramble.yaml', 'controller: https://hub:6443\ntoken: short\n')
    await two.tryRun('systemctl restart bramble-first-boot')
    await eventually('it has ended', async () =>
      (await two.run('systemctl is-failed bramble-first-boot || true')).startsWith('failed'),
    )
    t.match(await journal(two), /first-boot file is wrong.*token: must be a token/)
    t.match(await two.run('cat /boot/bramble.yaml'), /short/)
    t.equal(
      (await two.run('systemctl show -p NRestarts --value bramble-first-boot')).trim(),
      '0',
      'it is not tried again',
    )
  })
})
