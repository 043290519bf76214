/** Loop: accepts the names of CustomResourceDefinitions, and marks those as established whose kinds are served. */
import type { CustomResourceDefinition } from '../../../api/structural/custom-resource-definition.ts'
import { namedStatus } from '../../../api/structural/definition-conditions.ts'
import { caBundleProblem } from '../../../certs/ca-bundle.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { type Controller, runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { informer } from '../../store/informer.ts'
import type { Store } from '../../store/store.ts'

export type DefinitionControllerNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

export function definitionController({ store, clock, log }: DefinitionControllerNeeds): Loop {
  return {
    name: 'custom-resource-definitions',
    async run(signal) {
      const queue = workQueue(clock)
      const definitions = informer({ store, clock, log }, 'customresourcedefinitions', (present, previous) => {
        if (present !== undefined) queue.add(present.metadata.name)
        // Names that it had are free for others of its group.
        const had = previous?.status?.acceptedNames
        if (previous === undefined || equalJSON(had, present?.status?.acceptedNames)) return
        for (const name of namesIn(previous.spec.group)) queue.add(name)
      })
      const namesIn = (group: string) =>
        [...definitions.all()].filter(({ spec }) => spec.group === group).map(({ metadata }) => metadata.name)
      const controller: Controller = {
        name: 'custom-resource-definitions',
        async reconcile(name) {
          const { items } = await store.list('customresourcedefinitions')
          const definition = items.find(({ metadata }) => metadata.name === name)
          if (definition === undefined) return undefined
          const others = items.filter((one) => one !== definition && one.spec.group === definition.spec.group)
          const bundle = definition.spec.conversion?.webhook?.clientConfig?.caBundle
          const canVerify = caBundleProblem(bundle) === undefined
          const status = namedStatus(definition, others, rfc3339(clock.wallMs()), canVerify)
          if (status !== definition.status) await writeStatus(store, { ...definition, status })
          return undefined
        },
      }
      const work = async (until: AbortSignal) => {
        await definitions.listed
        await runController(controller, queue, log, until)
      }
      const loops = [
        { name: 'definitions', run: definitions.run },
        { name: 'work', run: work },
      ]
      await runLoops(loops, signal, log)
    },
  }
}

/** Onto the version that the status was computed from: a conflict is repeated by the queue. */
async function writeStatus(store: Store, definition: CustomResourceDefinition): Promise<void> {
  await store.updateStatus('customresourcedefinitions', definition)
}
