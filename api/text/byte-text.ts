/**
 * `512 B`, `3.9 GiB`, `16 GiB`. `rounded`: Math.floor where more than there is must not be shown, such as what is free beside what is
 * required.
 */
export function byteText(bytes: number, rounded: (value: number) => number = Math.round): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = bytes
  let unit = 0
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024
  return `${value >= 10 || unit === 0 ? rounded(value) : (rounded(value * 10) / 10).toFixed(1)} ${units[unit]}`
}
