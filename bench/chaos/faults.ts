/** The faults that are tried, one at a time. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Machine } from '../../test/support/machine.ts'
import type { Machines } from './machines.ts'

export type Fault = {
  readonly name: string
  /** For the report. */
  readonly text: string
  /** `hub`: the machine with the control plane; `worker`: one after the other. */
  readonly at: 'hub' | 'worker'
  /** Begins the fault on the machine, and ends it. */
  happen(machine: Machine, machines: Machines): Promise<void>
}

const offS = 5
const awayS = 60
/** For longer than an agent that has seen a full disk frees it again (`evictionMonitoringPeriod`, 10 s). */
const freeingS = 15

export const faults: readonly Fault[] = [
  {
    ...{ name: 'power', at: 'worker', text: `a machine loses its power for ${offS} s, and what it has not flushed` },
    async happen(machine, { cutPower }) {
      await cutPower(machine)
      await delay(offS * 1000)
      await machine.powerOn()
    },
  },
  {
    ...{ name: 'cable', at: 'worker', text: `the cable of a machine is out for ${awayS} s` },
    async happen(machine) {
      await machine.unplug()
      await delay(awayS * 1000)
      await machine.plugIn()
    },
  },
  {
    ...{ name: 'docker', at: 'worker', text: 'dockerd of a machine is killed; systemd starts it again' },
    async happen(machine) {
      await machine.run('systemctl kill --signal KILL --kill-who main docker')
    },
  },
  {
    ...{ name: 'disk', at: 'worker', text: `the disk of a machine is full for ${awayS} s` },
    async happen(machine, { giveImage }) {
      // All that a root user can take: the rest of the blocks too.
      await machine.tryRun('dd if=/dev/zero of=/var/filler bs=1M; dd if=/dev/zero of=/var/filler.rest bs=4k')
      await delay(awayS * 1000)
      await machine.run('rm -f /var/filler /var/filler.rest')
      await delay(freeingS * 1000)
      await giveImage(machine)
    },
  },
  {
    ...{ name: 'controller', at: 'hub', text: `the machine of the control plane is without power for ${awayS} s` },
    async happen(machine, { cutPower }) {
      await cutPower(machine)
      await delay(awayS * 1000)
      await machine.powerOn()
    },
  },
]
