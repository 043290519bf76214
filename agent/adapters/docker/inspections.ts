/** Lists containers with Docker's inspection, which is cached while a container's state does not change. */
import type Dockerode from 'dockerode'
import type { ContainerRuntime, RuntimeContainer } from '../../pods/runtime/runtime.ts'
import { containerOf } from './answers.ts'
import { askMs, call } from './call.ts'
import { identityOf, labelFilter } from './labels.ts'

export interface ContainerInspections {
  readonly list: ContainerRuntime['listContainers']
  /** The next list inspects the container again. */
  forget(id: string): void
  forgetAll(): void
}

export function containerInspections(
  docker: Dockerode,
  nodeName: string,
  imageIDOf: (name: string) => Promise<string>,
): ContainerInspections {
  const inspected = new Map<string, { readonly state: string; readonly container: RuntimeContainer }>()

  const look = async (row: Dockerode.ContainerInfo): Promise<readonly RuntimeContainer[]> => {
    const known = inspected.get(row.Id)
    if (known?.state === row.State) return [known.container]
    const identity = identityOf(row.Labels)
    if (identity === undefined) return []
    const tried = `Cannot look at container ${row.Id}`
    const found = await call(tried, askMs, (abortSignal) => docker.getContainer(row.Id).inspect({ abortSignal }), 404)
    if (found === undefined) return []
    const container = containerOf(found, identity, await imageIDOf(found.Image))
    inspected.set(row.Id, { state: found.State.Status, container })
    return [container]
  }

  return {
    async list(podUID) {
      const filters = { label: [...labelFilter(nodeName, podUID)] }
      const rows = await call('Cannot list containers', askMs, (abortSignal) =>
        docker.listContainers({ all: true, filters, abortSignal }),
      )
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
