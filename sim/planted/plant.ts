/** Plants a fault: the text of one file is replaced while Node.js loads it. */
import { register } from 'node:module'
import { type PlantedFault, plantedFaults } from './planted-faults.ts'

export const plantedNames = Object.keys(plantedFaults)

export function isPlantedFault(name: string): boolean {
  return plantedNames.includes(name)
}

/** To be called before the file of the fault is loaded. */
export function plant(name: string): void {
  register(new URL('./load-hook.js', import.meta.url), { data: plantedFaults[name] })
}

/** Throws where the text is not in the source exactly once. */
export function planted(source: string, { file, text, replacement }: PlantedFault): string {
  const [before = '', after, ...more] = source.split(text)
  if (after === undefined || more.length > 0) throw new Error(`Not once in ${file}: ${text}`)
  return `${before}${replacement}${after}`
}
