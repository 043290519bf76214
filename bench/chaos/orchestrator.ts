/** What is compared: a way to have containers run on machines. */
import type { Ending } from '../../test/support/machine.ts'
import type { Machines, MachinesOptions } from './machines.ts'

export type Workloads = {
  /** The number of containers `web`, without data, on any worker. */
  readonly replicas: number
  /** The roles of containers with a volume, one on each worker. */
  readonly withData: readonly string[]
}

export type Orchestrator = {
  readonly name: string
  /** What is on the disks of its machines before they boot. */
  preparation(): Promise<Pick<MachinesOptions, 'prepareHub' | 'prepareWorker'>>
  /** Makes one fleet of the machines, and asks for the workloads. */
  start(ending: Ending, machines: Machines, workloads: Workloads): Promise<void>
}
