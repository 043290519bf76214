/** The network between the machines of a world: which of them reach each other, and how long a packet takes. */
import type { RandomSource } from './random-source.ts'
import type { SimulatedTime } from './simulated-time.ts'

export interface SimulatedNetwork {
  readonly time: SimulatedTime
  /** A packet from one machine arrives at the other, if it is sent now. */
  passes(from: string, to: string): boolean
  delayMs(): number
  /** Whether packets in this direction are lost, whatever the machines do. */
  isCut(from: string, to: string): boolean
  /** Packets in this direction are lost from now on. */
  cut(from: string, to: string): void
  heal(from: string, to: string): void
  /** Whether the machine has power. */
  setUp(machine: string, isUp: boolean): void
  isUp(machine: string): boolean
  /** Delays are multiplied by this. */
  slowDown(factor: number): void
}

export function simulatedNetwork(time: SimulatedTime, random: RandomSource): SimulatedNetwork {
  const cuts = new Set<string>()
  const down = new Set<string>()
  let factor = 1
  return {
    time,
    passes: (from, to) => !down.has(from) && !down.has(to) && !cuts.has(`${from} ${to}`),
    isCut: (from, to) => cuts.has(`${from} ${to}`),
    // Most packets are fast, one in twenty waits for a radio link.
    delayMs: () => factor * (random.isTrue(0.05) ? random.between(100, 1_500) : random.between(1, 20)),
    cut: (from, to) => void cuts.add(`${from} ${to}`),
    heal: (from, to) => void cuts.delete(`${from} ${to}`),
    setUp(machine, isUp) {
      if (isUp) down.delete(machine)
      else down.add(machine)
    },
    isUp: (machine) => !down.has(machine),
    slowDown: (next) => {
      factor = next
    },
  }
}
