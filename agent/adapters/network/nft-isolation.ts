/** Reads from the kernel's rules which pods NetworkPolicies restrict. */
import type { IsolatedPod } from '../../network/network-report.ts'
import { isolationMap, podOfChain } from '../../network/policies/policy-chains.ts'
import { tableName } from '../../network/rule-set.ts'
import { isRecord, listed } from './nft/nft.ts'
import { runTool } from './run-tool.ts'

const directions = ['ingress', 'egress'] as const

/** In the order of their addresses. None where there are no rules of policies. Rejects where nft is not installed. */
export async function isolatedPods(nft = 'nft'): Promise<readonly IsolatedPod[]> {
  const found = new Map<string, IsolatedPod>()
  for (const direction of directions) {
    const { code, stdout } = await runTool(nft, ['-j', 'list', 'map', 'ip', tableName, isolationMap(direction)])
    if (code !== 0) continue
    for (const [address, pod] of elementsIn(stdout)) {
      const known = found.get(address)?.directions ?? []
      found.set(address, { pod, address, directions: [...known, direction] })
    }
  }
  return [...found.values()].sort((a, b) => inOrder.compare(a.address, b.address))
}

const inOrder = new Intl.Collator('en', { numeric: true })

/** Address and name of each pod, from a map of addresses to verdicts. */
export function elementsIn(text: string): readonly (readonly [address: string, pod: string | undefined])[] {
  const maps = listed(text).flatMap(({ map }) => (isRecord(map) && Array.isArray(map['elem']) ? [map['elem']] : []))
  return maps.flat().flatMap((element: unknown) => {
    const [address, verdict]: readonly unknown[] = Array.isArray(element) ? element : []
    if (typeof address !== 'string' || !isRecord(verdict)) return []
    const { goto } = verdict
    return [[address, isRecord(goto) ? podOfChain(String(goto['target'])) : undefined] as const]
  })
}
