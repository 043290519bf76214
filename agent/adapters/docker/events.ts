/** Docker's events of containers, until the stream ends. */
import type { RuntimeListener } from '../../runtime/runtime.ts'
import { runtimeError } from './call.ts'
import type { EngineReader } from './connection.ts'
import type { ContainerInspections } from './inspections.ts'
import type { JsonShape } from './json-reader.ts'
import { identityOf, labelFilter, ownLabels } from './labels.ts'

/** Docker repeats all labels of the container. */
const eventShape = {
  fields: { Actor: { fields: { ID: 'text', Attributes: { fields: ownLabels } } } },
} as const satisfies JsonShape

/** Resolves when `signal` aborts; rejects when the stream cannot be opened or ends. */
export async function watchContainers(
  answers: EngineReader,
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
    const path = `/events?${new URLSearchParams({ filters: JSON.stringify(filters) })}`
    const events = await answers.stream({ path }, eventShape, signal)
    inspections.forgetAll()
    opened()
    for await (const { Actor = {} } of events) {
      inspections.forget(Actor.ID ?? '')
      const podUID = identityOf(Actor.Attributes ?? {})?.podUID
      if (podUID !== undefined) changed(podUID)
    }
    throw new Error('The stream of events ended')
  } catch (error) {
    if (!signal.aborted) throw runtimeError(tried, error)
  }
}
