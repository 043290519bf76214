/** A small chart of one value over the last day. */
import { useState } from 'preact/hooks'
import { chartPath } from '../model/chart-path.ts'

export type ChartProps = {
  readonly name: string
  readonly unit: string
  readonly values: readonly (number | null)[]
  readonly stepSeconds: number
  /** The greatest value of the scale. */
  readonly top: number
}

const size = { width: 300, height: 64 }

/** With the value and the time under the pointer. */
export function Chart({ name, unit, values, stepSeconds, top }: ChartProps) {
  const [at, setAt] = useState<number>()
  const known = values.filter((value) => value !== null)
  /** A value comes every half minute: an older one is not that of now. */
  const last = values.slice(-3).findLast((value) => value !== null)
  const value = at === undefined ? last : values[at]
  const minutes = at === undefined ? 0 : ((values.length - 1 - at) * stepSeconds) / 60
  const when = minutes === 0 ? '' : minutes < 60 ? `${minutes} min ago` : `${(minutes / 60).toFixed(1)} h ago`
  const summary =
    known.length === 0 ? 'no values yet' : `${last ?? 'nothing'} ${unit} now, ${Math.max(...known)} ${unit} at most`
  return (
    <figure class="chart">
      <figcaption>
        <span>{name}</span>
        <strong>{value === null || value === undefined ? '–' : `${value} ${unit}`}</strong>
        <small>{when}</small>
      </figcaption>
      <svg
        viewBox={`0 0 ${size.width} ${size.height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name} of the last day: ${summary}`}
        onPointerMove={({ currentTarget, clientX }) => {
          const box = currentTarget.getBoundingClientRect()
          setAt(
            Math.max(
              0,
              Math.min(values.length - 1, Math.round(((clientX - box.left) / box.width) * (values.length - 1))),
            ),
          )
        }}
        onPointerLeave={() => setAt(undefined)}
      >
        <line x1="0" x2={size.width} y1={size.height} y2={size.height} />
        <path d={chartPath(values, { ...size, top })} />
      </svg>
      <div class="axis" aria-hidden="true">
        <span>24 h ago</span>
        <span>now</span>
      </div>
    </figure>
  )
}
