/** A DHCP server on a network of test machines, as a home router has one: udhcpd of busybox, in a network namespace of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Teardown, temporaryFolder } from './fleet.ts'
import { inSpace } from './machine-commands.ts'
import type { MachineNetwork } from './machine-network.ts'
import { plugged } from './routed-machines.ts'

export type DhcpServer = {
  /** The machine gets this address from now on. One that it has already is refused when it is renewed. */
  assign(mac: string, address: string): Promise<void>
}

/** It assigns nothing to others. Gone when the test ends. */
export async function dhcpServer(t: Teardown, network: MachineNetwork): Promise<DhcpServer> {
  const folder = await temporaryFolder(t)
  const { space } = await plugged(t, network)
  const leases = new Map<string, string>()
  const file = (name: string) => join(folder, name)
  let running: ChildProcess | undefined

  const stop = async () => {
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    running.kill('SIGKILL')
    await once(running, 'exit')
  }
  t.teardown(stop)

  return {
    async assign(mac, address) {
      leases.set(mac, address)
      await stop()
      const lines = [
        ...['interface host0', `start ${address}`, `end ${address}`, `lease_file ${file('leases')}`],
        ...[`pidfile ${file('pid')}`, 'option subnet 255.255.255.0', `option router ${network.hostAddress}`],
        ...['option lease 3600', ...[...leases].map((lease) => `static_lease ${lease.join(' ')}`), ''],
      ]
      await writeFile(file('udhcpd.conf'), lines.join('\n'))
      await writeFile(file('leases'), '')
      const line = ['--pdeathsig', 'KILL', ...inSpace(space, 'busybox', 'udhcpd', '-f', file('udhcpd.conf'))]
      running = spawn('setpriv', line, { stdio: 'ignore' })
    },
  }
}
