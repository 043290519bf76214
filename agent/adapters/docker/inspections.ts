/** Lists containers with Docker's inspection, which is cached while a container's state does not change. */
import type { ContainerRuntime, RuntimeContainer } from '../../runtime/runtime.ts'
import { containerOf, containerShape } from './answers.ts'
import { askMs, call } from './call.ts'
import type { EngineReader } from './connection.ts'
import type { JsonShape, Kept } from './json-reader.ts'
import { identityOf, labelFilter, ownLabels } from './labels.ts'

export interface ContainerInspections {
  readonly list: ContainerRuntime['listContainers']
  /** The next list inspects the container again. */
  forget(id: string): void
  forgetAll(): void
}

const rowsShape = {
  list: { fields: { Id: 'text', Labels: { fields: ownLabels }, State: 'text' } },
} as const satisfies JsonShape

type Row = Kept<typeof rowsShape>[number]

export function containerInspections(
  answers: EngineReader,
  nodeName: string,
  imageIDOf: (name: string) => Promise<string>,
): ContainerInspections {
  const inspected = new Map<string, { readonly state: string | undefined; readonly container: RuntimeContainer }>()

  const look = async ({ Id: id = '', State, Labels = {} }: Row): Promise<readonly RuntimeContainer[]> => {
    const known = inspected.get(id)
    if (known !== undefined && known.state === State) return [known.container]
    const identity = identityOf(Labels)
    if (identity === undefined) return []
    const tried = `Cannot inspect container ${id}`
    const path = `/containers/${id}/json`
    const found = await call(tried, askMs, (signal) => answers.read(path, containerShape, signal), 404)
    if (found === undefined) return []
    const container = containerOf(found, { id, identity, imageID: await imageIDOf(found.Image ?? '') })
    inspected.set(id, { state: found.State?.Status, container })
    return [container]
  }

  return {
    async list(podUID) {
      const filters = JSON.stringify({ label: [...labelFilter(nodeName, podUID)] })
      const path = `/containers/json?${new URLSearchParams({ all: 'true', filters })}`
      const rows = await call('Cannot list containers', askMs, (signal) => answers.read(path, rowsShape, signal))
      if (podUID === undefined) {
        const here = new Set(rows.map(({ Id }) => Id))
        for (const id of [...inspected.keys()]) if (!here.has(id)) inspected.delete(id)
      }
      return (await Promise.all(rows.map(look))).flat()
    },
    forget: (id) => void inspected.delete(id),
    forgetAll: () => inspected.clear(),
  }
}
