/** The EndpointSlices that controllers have written, by their Service; and which changes of them others have made. */
import { type InformerNeeds, informer, keyText } from '../../store/informer.ts'
import { mirroringController } from './mirrored-slices.ts'
import { managedByLabel, serviceNameLabel, sliceController } from './service-slices.ts'
import type { StoredSlice } from './slice-packing.ts'

export interface SliceIndex {
  /** Those of a Service, by its key, that the controller of this name has written and that are not being deleted. */
  of(service: string, controller: string): readonly StoredSlice[]
  catchUp(): void
  readonly listed: Promise<void>
  run(signal: AbortSignal): Promise<void>
  /**
   * Calls `write`, which is given a function to name the slices that it has written or removed, and then reads these changes:
   * `onForeign` is not called for them.
   */
  whileWriting(service: string, write: (wrote: (slice: StoredSlice) => void) => Promise<void>): Promise<void>
}

/** `onForeign`: called with the key of a Service when another than this process has changed one of its slices. */
export function sliceIndex(needs: InformerNeeds, onForeign: (service: string) => void): SliceIndex {
  const byService = new Map<string, Map<string, StoredSlice>>()
  /** By Service: the changes that were seen while this process was writing its slices. */
  const seenWhileWriting = new Map<string, Set<string>>()

  const changed = (service: string, change: string) => {
    const seen = seenWhileWriting.get(service)
    if (seen === undefined) onForeign(service)
    else seen.add(change)
  }
  const slices = informer(needs, 'endpointslices', (present, previous) => {
    const [before, after] = [serviceOf(previous), serviceOf(present)]
    if (previous !== undefined && before !== undefined && before !== after) {
      const known = byService.get(before)
      known?.delete(keyText(previous.metadata))
      if (known?.size === 0) byService.delete(before)
      changed(before, previous.metadata.uid)
    }
    if (present === undefined || after === undefined) return
    const known = byService.get(after) ?? new Map<string, StoredSlice>()
    byService.set(after, known.set(keyText(present.metadata), present))
    changed(after, present.metadata.resourceVersion)
  })

  return {
    of: (service, controller) =>
      [...(byService.get(service)?.values() ?? [])].filter(
        ({ metadata }) => metadata.labels?.[managedByLabel] === controller && metadata.deletionTimestamp === undefined,
      ),
    catchUp: slices.catchUp,
    listed: slices.listed,
    run: slices.run,
    async whileWriting(service, write) {
      const seen = new Set<string>()
      const own = new Set<string>()
      seenWhileWriting.set(service, seen)
      try {
        await write(({ metadata }) => void own.add(metadata.resourceVersion).add(metadata.uid))
        slices.catchUp()
      } finally {
        seenWhileWriting.delete(service)
        if ([...seen].some((change) => !own.has(change))) onForeign(service)
      }
    },
  }
}

/** The key of the Service; undefined: it is not a slice of a controller. */
function serviceOf(slice: StoredSlice | undefined): string | undefined {
  const { namespace = '', labels = {} } = slice?.metadata ?? {}
  const name = labels[serviceNameLabel]
  const isOfController = [sliceController, mirroringController].includes(labels[managedByLabel] ?? '')
  return name === undefined || !isOfController ? undefined : keyText({ namespace, name })
}
