/** Runs in the thread of Node.js that loads modules (module.register). */
import type { LoadHook } from 'node:module'
import { planted } from './plant.ts'
import type { PlantedFault } from './planted-faults.ts'

let fault: PlantedFault | undefined

export function initialize(data: PlantedFault): void {
  fault = data
}

export const load: LoadHook = async (url, context, nextLoad) => {
  const loaded = await nextLoad(url, context)
  if (fault === undefined || !url.endsWith(`/dist/${fault.file}`) || loaded.source == null) return loaded
  return { ...loaded, source: planted(Buffer.from(loaded.source as Uint8Array).toString(), fault) }
}
