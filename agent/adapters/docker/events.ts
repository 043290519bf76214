/** Docker's events of containers, until the stream ends. */
import type Dockerode from 'dockerode'
import type { RuntimeListener } from '../../pods/runtime/runtime.ts'
import { messages, runtimeError } from './call.ts'
import type { ContainerInspections } from './inspections.ts'
import { identityOf, labelFilter } from './labels.ts'

/** Resolves when `signal` aborts; rejects when the stream cannot be opened or ends. */
export async function watchContainers(
  docker: Dockerode,
  nodeName: string,
  inspections: Pick<ContainerInspections, 'forget' | 'forgetAll'>,
  { opened, changed }: RuntimeListener,
  signal: AbortSignal,
): Promise<void> {
  const tried = 'Cannot watch Docker'
  const filters = {
    type: ['container'],
    label: [...labelFilter(nodeName)],
    event: ['start', 'die', 'oom', 'destroy', 'pause', 'unpause'],
  }
  try {
    const stream = await docker.getEvents({ filters: JSON.stringify(filters), abortSignal: signal })
    inspections.forgetAll()
    opened()
    for await (const { Actor } of messages(stream)) {
      const { ID, Attributes } = (Actor ?? {}) as {
        readonly ID?: string
        readonly Attributes?: { [name: string]: string }
      }
      inspections.forget(ID ?? '')
      const podUID = identityOf(Attributes ?? {})?.podUID
      if (podUID !== undefined) changed(podUID)
    }
    throw new Error('The stream of events ended')
  } catch (error) {
    if (!signal.aborted) throw runtimeError(tried, error)
  }
}
