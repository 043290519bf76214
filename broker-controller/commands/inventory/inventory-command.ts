/** `bramble-controller inventory`: what the machines of the fleet are made of. */
import type { Node } from '../../../api/node.ts'
import { type ApiClient, apiClient, statusMessage } from '../../../daemon/api-client.ts'
import { inventoryRow } from '../command-table.ts'
import { kubeconfigPlace, readKubeconfig } from '../connection/kubeconfig.ts'
import { type CommandOutput, runCommand } from '../run-command.ts'
import { inventoryListing } from './inventory-listing.ts'

/** An answer of the API has an end: that of so many nodes is below it. */
const nodesAtOnce = 500

/** `argv`: what follows `inventory`. The exit code. Never rejects for what was typed or what the API answers. */
export async function inventoryCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(inventoryRow, argv, output, ({ values }) => {
    const { path, context } = kubeconfigPlace(values.kubeconfig, values['data-dir'])
    return async () => {
      const nodes = await nodesInPages(apiClient(await readKubeconfig(path, context)), output.signal)
      return inventoryListing(nodes, values.output)
    }
  })
}

/** Throws when the API refuses. Nodes that were deleted meanwhile may be among them. */
export async function nodesInPages(client: Pick<ApiClient, 'get'>, signal: AbortSignal): Promise<readonly Node[]> {
  const nodes: Node[] = []
  for (let at: string | undefined = ''; at !== undefined; ) {
    const { status, body } = await client.get(`/api/v1/nodes?limit=${nodesAtOnce}${at}`, signal)
    if (status !== 200)
      throw new Error(
        `Cannot list the nodes: ${statusMessage(body) ?? 'the server is not the API of a fleet'} (status ${status})`,
      )
    const { items = [], metadata } = body as { items?: readonly Node[]; metadata?: { continue?: string } }
    nodes.push(...items)
    at = metadata?.continue ? `&continue=${encodeURIComponent(metadata.continue)}` : undefined
  }
  return nodes
}
