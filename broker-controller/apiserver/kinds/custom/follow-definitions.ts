/** Loop of every controller: serves the kinds that the CustomResourceDefinitions of its store define. */
import { isApiError } from '../../../../api/api-error.ts'
import type { Clock } from '../../../../daemon/clock.ts'
import type { Log } from '../../../../daemon/log.ts'
import { type Loop, startLoops } from '../../../../daemon/run.ts'
import { informer } from '../../../store/informer.ts'
import type { Store } from '../../../store/store.ts'
import type { LiveKinds } from './live-kinds.ts'

export type DefinitionNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

/** Its loop keeps the kinds; those of now are served when the promise resolves. */
export async function followDefinitions(needs: DefinitionNeeds, kinds: LiveKinds): Promise<Loop> {
  const definitions = informer(needs, 'customresourcedefinitions', (present, previous) => {
    const name = (present ?? previous)?.metadata.name
    if (name !== undefined) kinds.change(name, present)
  })
  const { running, run } = startLoops([{ name: 'definitions', run: definitions.run }], needs.log)
  await Promise.race([definitions.listed, running])
  kinds.follow(() => {
    try {
      definitions.catchUp()
    } catch (error) {
      // It lists again, and has what it had until then.
      if (!isApiError(error, 'Expired')) throw error
    }
  })
  return { name: 'definitions', run }
}
