/** The address of a machine on the dashboard, behind its page. */
export function nodeHref(nodeName: string): string {
  return `#/node/${encodeURIComponent(nodeName)}`
}
