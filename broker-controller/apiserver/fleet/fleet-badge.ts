/** The fleet's state as a badge: an SVG of its own, without scripts, fonts or anything from elsewhere. */
import type { FleetSummary } from './fleet-summary.ts'

const height = 20
const labelWidth = 40
/** At 11 px, of the fonts that browsers take for these families. */
const characterWidth = 6.5
const colors = { good: '#3c873a', warning: '#b08800', bad: '#b3261e' } as const

/** Only numbers of the fleet are in it, so nothing in it needs escaping. */
export function fleetBadge({ nodes, nodesReady, nodesNotReady, problems }: FleetSummary): string {
  const color = nodesNotReady > 0 ? colors.bad : problems > 0 ? colors.warning : colors.good
  const problemText = problems === 1 ? ', 1 problem' : problems > 1 ? `, ${problems} problems` : ''
  const text = `${nodesReady}/${nodes} ready${problemText}`
  const textWidth = Math.ceil(text.length * characterWidth) + 12
  const width = labelWidth + textWidth
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" role="img" aria-label="fleet: ${text}">`,
    `<title>fleet: ${text}</title>`,
    `<rect width="${labelWidth}" height="${height}" fill="#444"/>`,
    `<rect x="${labelWidth}" width="${textWidth}" height="${height}" fill="${color}"/>`,
    '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">',
    `<text x="${labelWidth / 2}" y="14">fleet</text>`,
    `<text x="${labelWidth + textWidth / 2}" y="14">${text}</text>`,
    '</g></svg>\n',
  ].join('')
}
