/** The machines of a simulation's file. */
import { TaintSchema } from '../../api/node.ts'
import { duplicate, invalid, type Problem, required } from '../../api/problem.ts'
import { quantityToNumber } from '../../api/quantity.ts'
import { type Described, integer, list, mapOf, object, optional, quantity, text } from '../../api/schema.ts'
import { type MachineShape, usualMachine } from '../world/machine-shape.ts'
import { usualPool } from '../world/simulated-pools.ts'

export const MachineSchema = object({
  name: text,
  /** More than one are named NAME-1, NAME-2 and so on. */
  count: optional(integer),
  cpu: optional(quantity),
  memory: optional(quantity),
  storage: optional(quantity),
  zone: optional(text),
  labels: optional(mapOf(text)),
  taints: optional(list(TaintSchema)),
})
export type FileMachine = Described<typeof MachineSchema>

export const zoneLabel = 'topology.kubernetes.io/zone'
const mostMachines = 500

export function machineProblems(
  machines: readonly FileMachine[],
  others: readonly Pick<MachineShape, 'name'>[],
): readonly Problem[] {
  const names = new Set(others.map(({ name }) => name))
  const problems: Problem[] = []
  for (const [i, machine] of machines.entries()) {
    const field = `machines[${i}]`
    problems.push(...fieldProblems(machine, field))
    if (!isCount(machine.count)) continue
    for (const own of namesOf(machine)) {
      if (names.has(own)) problems.push(duplicate(`${field}.name`, own))
      names.add(own)
    }
  }
  if (names.size > mostMachines)
    problems.push(required('machines', `there are ${names.size}: use at most ${mostMachines}`))
  return problems
}

function fieldProblems(machine: FileMachine, field: string): readonly Problem[] {
  const { name, count, zone, labels } = machine
  const problems: Problem[] = []
  if (!/^[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?$/.test(name)) {
    problems.push(invalid(`${field}.name`, name, 'use at most 52 lower-case letters, digits and hyphens, like pi-1'))
  }
  if (!isCount(count)) {
    problems.push(invalid(`${field}.count`, count, `use a whole number from 1 to ${mostMachines}`))
  }
  for (const what of ['cpu', 'memory', 'storage'] as const) {
    const amount = machine[what]
    if (amount !== undefined && quantityToNumber(amount) <= 0)
      problems.push(invalid(`${field}.${what}`, amount, 'must be more than 0'))
  }
  if (zone !== undefined && labels?.[zoneLabel] !== undefined) {
    problems.push(invalid(`${field}.labels`, zoneLabel, 'give the zone here or as `zone`, not both'))
  }
  return problems
}

function isCount(count = 1): boolean {
  return count >= 1 && count <= mostMachines
}

export function machinesOf(machines: readonly FileMachine[]): readonly MachineShape[] {
  return machines
    .flatMap((machine) => namesOf(machine).map((name) => shapeOf(name, machine)))
    .map((shape, i) => ({ ...shape, pools: [usualPool(i + 1)] }))
}

function namesOf({ name, count }: FileMachine): readonly string[] {
  return count === undefined ? [name] : Array.from({ length: count }, (_, i) => `${name}-${i + 1}`)
}

function shapeOf(name: string, { cpu, memory, storage, zone, labels = {}, taints = [] }: FileMachine): MachineShape {
  const usual = usualMachine(name)
  return {
    ...usual,
    ...(cpu !== undefined && { cpus: quantityToNumber(cpu) }),
    ...(memory !== undefined && { memoryBytes: quantityToNumber(memory) }),
    ...(storage !== undefined && { storageBytes: quantityToNumber(storage) }),
    labels: { ...labels, ...(zone !== undefined && { [zoneLabel]: zone }) },
    taints,
  }
}
