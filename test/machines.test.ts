/** Machines that boot, as the tests of what happens to a whole machine need them. */
import { test } from 'tap'
import { bootMachine } from './support/machine.ts'
import { command } from './support/machine-commands.ts'
import { machineNetwork } from './support/machine-network.ts'

test('test machines', async (t) => {
  const network = await machineNetwork(t)
  const [machine, other] = await Promise.all([
    bootMachine(t, { name: 'pi-01', network, boardSerial: '10000000deadbeef' }),
    bootMachine(t, { name: 'pi-02', network }),
  ])
  await machine.importImage('test/busybox:1')

  await t.test('a machine boots with systemd, logind and Docker, and with no unit failed', async (t) => {
    t.equal(
      (await machine.run('systemctl is-system-running')).trim(),
      'running',
      await machine.run('systemctl --failed'),
    )
    t.match(await machine.run('hostname'), /^pi-01$/m)
    t.match(
      await machine.run(
        'loginctl --no-legend; busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager ListSeats',
      ),
      /a\(so\)/,
    )
    t.match(await machine.run('cat /proc/cpuinfo'), /Serial\s*: 10000000deadbeef/)
    t.equal(
      (await machine.run('docker run --rm --memory 32m test/busybox:1 echo in a container')).trim(),
      'in a container',
    )
    const { Containers } = await machine.docker().info()
    t.equal(Containers, 0, 'this host can ask the engine')
  })

  await t.test('machines reach each other and this host, until the cable is out', async (t) => {
    t.match(await machine.run(`ping -c 1 -W 5 ${other.address} && ping -c 1 -W 5 ${machine.hostAddress}`), /1 received/)
    await machine.unplug()
    t.not((await machine.tryRun(`ping -c 1 -W 1 ${machine.hostAddress}`)).code, 0)
    await machine.plugIn()
    t.match(await machine.run(`ping -c 3 -W 5 ${machine.hostAddress}`), / received/)
  })

  await t.test('machines reach each other on a host whose firewall lets nothing unknown through', async (t) => {
    const last = ['FORWARD', '-i', network.bridge, '-j', 'DROP']
    t.equal((await command('iptables', ['--wait', '--append', ...last])).code, 0)
    t.teardown(() => command('iptables', ['--wait', '--delete', ...last]))
    t.match(await machine.run(`ping -c 1 -W 5 ${other.address}`), /1 received/)
  })

  await t.test('a machine reboots, and its disk and its containers are those it had', async (t) => {
    const bootID = await machine.run('cat /proc/sys/kernel/random/boot_id')
    await machine.run(
      'docker run -d --name again --restart always test/busybox:1 sh -c "trap exit TERM; while :; do sleep 1; done"',
    )
    await machine.write('/root/note', 'kept\n')
    await machine.reboot()
    t.equal(machine.boots, 2)
    t.not(await machine.run('cat /proc/sys/kernel/random/boot_id'), bootID)
    t.equal(await machine.run('cat /root/note'), 'kept\n')
    t.match(await machine.run('docker ps --format "{{.Names}}"'), /^again$/m)
  })

  await t.test('a machine whose power is cut stops nothing in order, and comes back', async (t) => {
    await machine.cutPower()
    t.equal(machine.initPid, undefined)
    const stops = (await machine.journal('docker.service')).match(/Stopping docker\.service/g)
    t.equal(stops?.length, 1, 'at the reboot before, and not now')
    await machine.powerOn()
    t.equal(machine.boots, 3)
    t.match(await machine.run('docker ps --format "{{.Names}}"'), /^again$/m)
  })

  await t.test('a machine is switched off', async (t) => {
    await other.powerOff()
    t.equal(other.initPid, undefined)
    t.throws(() => other.path('/'), /is off/)
  })
})
