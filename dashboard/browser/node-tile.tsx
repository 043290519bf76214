/** One machine in the list. */
import type { NodeCard, UsageRow } from '../../api/dashboard/dashboard-messages.ts'
import { concernOf, levelOf, powerWords, stateWords, usageLevel } from '../../api/dashboard/node-view.ts'
import { ago, duration } from '../../api/dashboard/view-words.ts'
import { hrefOf } from '../model/places.ts'

export type NodeTileProps = { readonly node: NodeCard; readonly usage: UsageRow | undefined; readonly now: number }

export function NodeTile({ node, usage, now }: NodeTileProps) {
  const level = levelOf(node)
  const concern = concernOf(node)
  return (
    <a class={`tile ${level}`} href={hrefOf({ view: 'node', name: node.name })}>
      <div class="top">
        <strong>{node.name}</strong>
        {node.zone && <span class="zone">{node.zone}</span>}
      </div>
      <div class="state">
        <span class="dot" aria-hidden="true" />
        {stateWords(node)}
        {node.since !== undefined && <span class="since"> for {duration(now - node.since)}</span>}
      </div>
      {concern !== undefined && <p class="why">{concern}</p>}
      {level !== 'bad' && <Meters usage={usage} />}
      <Facts node={node} usage={usage} now={now} isShort={concern !== undefined} />
    </a>
  )
}

const meters = [
  ['cpu', 'CPU'],
  ['memory', 'Mem'],
  ['celsius', 'Temp'],
  ['disk', 'Disk'],
] as const

/** CPU, memory, temperature and disk, each with a bar; a machine that has not reported yet shows empty ones. */
export function Meters({ usage }: { readonly usage: UsageRow | undefined }) {
  return (
    <dl class="meters">
      {meters.map(([kind, name], i) => {
        const value = usage?.[i] ?? null
        return (
          <div key={kind} class={value === null ? 'unknown' : usageLevel(kind, value)}>
            <dt>{name}</dt>
            <dd>{value === null ? '–' : `${value}${kind === 'celsius' ? '°' : '%'}`}</dd>
            <span class="track" aria-hidden="true">
              <span style={{ width: `${Math.min(100, value ?? 0)}%` }} />
            </span>
          </div>
        )
      })}
    </dl>
  )
}

function Facts({ node, usage, now, isShort }: NodeTileProps & { readonly isShort: boolean }) {
  const power = powerWords(node)
  const load = usage?.[4] ?? null
  const booted = usage?.[5] ?? null
  return (
    <p class="facts">
      {node.seen !== undefined && <span>last seen {ago(node.seen, now)}</span>}
      {power !== undefined && power.level !== 'good' && <span class={power.level}>{power.text}</span>}
      <span>
        {node.pods} {node.pods === 1 ? 'pod' : 'pods'}
      </span>
      {!isShort && load !== null && <span>load {load}</span>}
      {node.wear !== undefined && <span>wear {node.wear}</span>}
      {!isShort && booted !== null && <span>up {duration(now - booted)}</span>}
      {node.version !== undefined && <span class="version">{node.version.replace(/^.*bramble[.-]?/, '')}</span>}
    </p>
  )
}
