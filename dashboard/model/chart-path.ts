/** A series of values → the path of an SVG chart. */

/** `M`oves over gaps and `L`ines between values; '' without values. Values are clipped to `top`. */
export function chartPath(
  values: readonly (number | null)[],
  { width, height, top }: { readonly width: number; readonly height: number; readonly top: number },
): string {
  const step = values.length > 1 ? width / (values.length - 1) : 0
  let isDown = false
  const parts: string[] = []
  for (const [i, value] of values.entries()) {
    if (value === null) {
      isDown = false
      continue
    }
    const y = height - (Math.min(value, top) / top) * height
    parts.push(`${isDown ? 'L' : 'M'}${round(i * step)} ${round(y)}`)
    // A value between two gaps would be invisible.
    if (!isDown && (values[i + 1] ?? null) === null) parts.push(i === values.length - 1 ? 'h-1' : 'h1')
    isDown = true
  }
  return parts.join('')
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
